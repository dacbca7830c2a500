"""The network of the chaos tests: passes what it should, and fails as it is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.chaos.proxy import Proxy
from tests.chaos.requests import END_TXN


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy before a server that answers with what it is sent."""
    with socket.create_server(("127.0.0.1", 0)) as server, Proxy() as made:
        made.target = server.getsockname()[1]
        threading.Thread(target=_echo, args=(server,), daemon=True).start()
        yield made
        server.shutdown(socket.SHUT_RDWR)


def _echo(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with connection:
        try:
            while data := connection.recv(1 << 16):
                connection.sendall(data)
        except OSError:
            return


def connect(proxy: Proxy) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", proxy.port))
    connection.settimeout(30)
    return connection


def receive(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length and (more := connection.recv(length - len(data))):
        data += more
    return data


def ask(connection: socket.socket, word: bytes) -> bytes:
    connection.sendall(word)
    return receive(connection, len(word))


def silent(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(30)
    return False


def test_a_stall_holds_everything_and_loses_nothing(proxy: Proxy) -> None:
    with connect(proxy) as before:
        assert ask(before, b"one") == b"one"
        proxy.stall()
        before.sendall(b"two")
        with connect(proxy) as meanwhile:
            meanwhile.sendall(b"three")
            assert silent(before)
            assert silent(meanwhile)
            proxy.flow()
            assert receive(before, 3) == b"two"
            assert receive(meanwhile, 5) == b"three"


def test_a_lost_connection_stays_dead_and_a_new_one_passes(proxy: Proxy) -> None:
    with connect(proxy) as before:
        assert ask(before, b"one") == b"one"
        proxy.lose()
        before.sendall(b"two")
        proxy.flow()
        before.sendall(b"three")
        assert silent(before)
        with connect(proxy) as after:
            assert ask(after, b"four") == b"four"


def test_a_cut_resets_and_a_new_connection_passes(proxy: Proxy) -> None:
    with connect(proxy) as before, connect(proxy) as after:
        assert ask(before, b"one") == b"one"
        assert proxy.connections >= 1
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            before.recv(1)
        after.close()
        with connect(proxy) as new:
            assert ask(new, b"two") == b"two"


def test_a_delay_loses_nothing(proxy: Proxy) -> None:
    with connect(proxy) as connection:
        proxy.delay(0.1)
        assert ask(connection, b"late") == b"late"


END = bytes([0, 0, 0, 4, 0, END_TXN, 1, 2])


def test_the_answer_to_the_end_of_a_transaction_is_lost_once(proxy: Proxy) -> None:
    with connect(proxy) as before, connect(proxy) as after:
        assert ask(before, b"\0\0\0\2\0\3") == b"\0\0\0\2\0\3"
        proxy.lose_answer()
        before.sendall(END)
        with pytest.raises(ConnectionResetError):
            before.recv(1)
        assert ask(after, END) == END
        assert proxy.passed == [END, END]


def test_the_answer_to_the_end_of_a_transaction_is_held_back(proxy: Proxy) -> None:
    with connect(proxy) as connection, connect(proxy) as other:
        proxy.hold_answer()
        connection.sendall(END)
        assert silent(connection)
        assert ask(other, END) == END
        proxy.flow()
        assert receive(connection, len(END)) == END
        assert ask(connection, END) == END
