"""The topics of the output are not as they were left, or a transaction ends in another way than it was told to."""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from collections.abc import Iterator

from kafka import KafkaProducer
from kafka.errors import TransactionalIdNotFoundError

from tests.chaos.daemons import until
from tests.chaos.failure import failure
from tests.chaos.settings import ARRIVAL, LOGGED, PLAIN, TRANSACTIONS
from tests.chaos.trial import Trial

_READING = r"reading kafka topic"
_OUTPUTS = ("predictions", "dead_letters")


def _next_end(trial: Trial) -> bytes:
    """Wait for the next request to end a transaction."""
    passed = trial.site.network.passed
    before = len(passed)
    until(lambda: len(passed) > before, lambda: f"no transaction ends:\n{trial.daemons[-1].log[-4000:]}")
    return passed[before]


@failure("the answer to EndTxn is lost", _READING, TRANSACTIONS, ARRIVAL, by_network=True)
def answer_lost(trial: Trial) -> int:
    """End the connection as the broker says that a transaction is committed: it is asked again."""
    times = 20 if trial.long else 4
    trial.works(1000, 300, 500)
    for _ in range(times):
        trial.site.network.lose_answer()
        _next_end(trial)
    return times


@failure("the answer to EndTxn comes late", _READING, TRANSACTIONS, ARRIVAL, by_network=True, short=False)
def answer_late(trial: Trial) -> int:
    """Hold it back; in the long form until the client has given up waiting and asked again."""
    trial.works(1000, 300, 500)
    trial.site.network.hold_answer()
    _next_end(trial)
    time.sleep(45.0 if trial.long else trial.draw.uniform(0.5, 1.5))
    trial.site.network.flow()
    return 1


@failure("EndTxn comes once more, into the next transaction", _READING, TRANSACTIONS, ARRIVAL, by_network=True)
def end_repeated(trial: Trial) -> int:
    """Deliver a copy that was held up on the way: the broker must not end the transaction that is open by then."""
    trial.works(1000, 300, 500)
    times = 20 if trial.long else 5
    for _ in range(times):
        request = _next_end(trial)
        time.sleep(trial.draw.uniform(0.1, 0.4))
        with socket.create_connection(("127.0.0.1", trial.site.broker.behind), timeout=30) as connection:
            connection.sendall(request)
            connection.recv(1)
    return times


@failure(
    "the broker forgets a transactional id that is quiet",
    _READING,
    TRANSACTIONS,
)
def forgotten(trial: Trial) -> int:
    """Give it nothing to write for longer than the broker keeps it in mind."""
    trial.learns(500)
    with trial.site.broker.admin() as admin:

        def gone() -> bool:
            try:
                admin.describe_transactions([trial.topics["predictions"]])
            except TransactionalIdNotFoundError:
                return True
            return False

        until(gone, lambda: "the broker never forgets")
    trial.produce(500)
    trial.wait_for(1000)
    return 1


# In the suite tests/kafka/test_sink.py has it.
@failure("a foreign transaction is open in the output", _READING, TRANSACTIONS, PLAIN, ARRIVAL, LOGGED, short=False)
def foreign(trial: Trial) -> int:
    """Have somebody leave one open while the daemon works, is killed and starts again: nobody waits for it."""
    times = 5 if trial.long else 2
    trial.learns(300)
    with _open_transaction(trial):
        for number in range(times):
            trial.produce(500)
            time.sleep(trial.draw.uniform(0.0, 0.5))
            trial.daemons[-1].kill()
            trial.start()
            trial.wait_for(300 + 500 * (number + 1))
    return times


@contextlib.contextmanager
def _open_transaction(trial: Trial) -> Iterator[None]:
    name = f"somebody-{trial.topics['predictions']}"
    producer = KafkaProducer(bootstrap_servers=trial.site.broker.bootstrap, transactional_id=name)
    try:
        producer.init_transactions()
        producer.begin_transaction()
        for key in _OUTPUTS:
            producer.send(trial.topics[key], b"{}").get(timeout=60)
        yield
        producer.abort_transaction()
    finally:
        producer.close(timeout=5)


@failure(
    "the checkpoint directory is lost", r"error .*no checkpoint says which: .*existing: append", TRANSACTIONS, PLAIN
)
def directory_lost(trial: Trial) -> int:
    """Take it away: nothing is written a second time, until it is there again."""
    trial.learns(1000)
    assert trial.daemons[-1].stop() == 0
    away = trial.folder / "away"
    shutil.move(trial.directory, away)
    for _ in range(2):
        # By the second time there is a checkpoint again.
        refused = trial.start()
        assert refused.wait() == 1, f"status {refused.status}"
    shutil.rmtree(trial.directory)
    shutil.move(away, trial.directory)
    trial.produce(500)
    return 1
