"""Payloads that would take more memory than they account for are refused."""

import os
import pickle
import resource
from typing import Any

import pytest

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.unpickler import loads
from tests.daemon.pickles import (
    build,
    call,
    load,
    made,
    name,
    new,
    program,
    refused,
    value,
)


def test_the_arrays_by_hand_are_arrays() -> None:
    assert load(program(made("array", "<i4", (2,), "C", bytes(8)))).tolist() == [0, 0]
    assert load(program(made("array", "|O", (2,), "C", [1, "a"]))).tolist() == [1, "a"]
    assert load(program(made("number", "<f8", bytes(8)))) == 0.0


def test_arrays_that_do_not_add_up(subtests: pytest.Subtests) -> None:
    for arguments in [
        ("<f8", (1 << 50,), "C", b""),
        ("|O", (1 << 50,), "C", []),
        ("<f8", (1 << 62, 4), "C", b""),
        ("<f8", (0, 1 << 62), "C", b""),
        ("<f8", (-1,), "C", b""),
        ("<f8", (2,), "C", bytes(15)),
        ("|O", (2,), "C", [1]),
        ("|O", (1,), "C", bytes(8)),
        ("<f8", (1,), "C", [1.0]),
        ("<f8", ("2",), "C", bytes(16)),
        ("<f8", [2], "C", bytes(16)),
        ("<f8", (1,), "A", bytes(8)),
        ("<f8", (1,), None, bytes(8)),
        ("<f8", (1,), "C", "text"),
        (">f8", (1,), "C", bytes(8)),
        *((code, (1,), "C", bytes(8)) for code in ("|V0", "|V8", "<U0", "O", "f8,f8", "(1000000000,)f8", "object", 8)),
    ]:
        with subtests.test(arguments=arguments):
            refused(program(made("array", *arguments)))
    for arguments in [("<f8", b"1234567"), ("|O", b"12345678"), ("<f8",), ("<M8[s]", bytes(8))]:
        with subtests.test(arguments=arguments):
            refused(program(made("number", *arguments)))


def test_references_do_not_multiply_memory() -> None:
    data = value({i: float(i) for i in range(20_000)})
    vector = name("river._river_rust.vectordict", "VectorDict")
    once = pickle.BINGET + b"\x00" + value(None) + value(None) + value(True)
    many = program(data, pickle.MEMOIZE, *[call(vector, once) + pickle.POP for _ in range(500)])
    refused(many, "asks for more memory than its length accounts for")
    assert len(load(program(data, pickle.MEMOIZE, call(vector, once)))) == 20_000


# What ends the process cannot be tried in this one.


def outcome(data: bytes, megabytes: int = 400) -> str:
    """Read a payload in a process with little memory, and give what came of it, or the signal it died of."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, resource.RLIM_INFINITY))
            try:
                loads(data)
                told = "restored"
            except CheckpointError as error:
                told = str(error)
            os.write(writer, told.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as file:
        told = file.read()
    _, ended = os.waitpid(child, 0)
    return told or f"status {ended}"


REBUILD = name("streamkernel.state", "rebuild")
ADAPTIVE = name("streamkernel.estimators.adaptive_classifier", "AdaptiveKernelClassifier")
GROWING = name("streamkernel.estimators.classifier", "KernelClassifier")


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(
    "arguments",
    [
        {"n_features": 60_000_000},
        {"n_trees": 60_000},
        {"buffer_size": 10**9},
        {"tree_window": 10**12},
        {"drift_rates": [0.1] * 99},
    ],
)
def test_a_payload_does_not_choose_how_large_an_estimator_is(arguments: dict[str, Any]) -> None:
    data = program(REBUILD, ADAPTIVE + value({"seed": 1, **arguments}), pickle.TUPLE2, pickle.REDUCE)
    assert f"AdaptiveKernelClassifier.{next(iter(arguments))}: checkpoint has " in outcome(data)


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("arguments", [{"block_size": 10**6}, {"blocks_per_step": 10**6}, {"max_features": 10**9}])
def test_nor_how_large_the_steps_of_a_growing_one_are(arguments: dict[str, Any]) -> None:
    data = program(REBUILD, GROWING + value({"seed": 1, **arguments}), pickle.TUPLE2, pickle.REDUCE)
    assert f"KernelClassifier.{next(iter(arguments))}: checkpoint has " in outcome(data)


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("operator", ["Sum", "Product"])
def test_a_kernel_that_is_doubled_again_and_again_is_refused(operator: str) -> None:
    first = new(name("streamkernel.kernels.arc_cosine", "ArcCosine")) + build(b"", value({"order": 1}))
    kernel = first + pickle.MEMOIZE
    for number in range(60):
        part = pickle.BINGET + bytes([number])
        state = pickle.EMPTY_DICT + value("left") + part + pickle.SETITEM + value("right") + part + pickle.SETITEM
        kernel += pickle.POP + new(name("streamkernel.kernels.operators", operator)) + build(b"", state)
        kernel += pickle.MEMOIZE
    assert "is too large: at most 32 kernels" in outcome(program(kernel))


@pytest.mark.usefixtures("processes")
def test_many_estimators_take_no_more_memory_than_their_states_would() -> None:
    one = name("streamkernel.state", "rebuild") + pickle.BINGET + b"\0" + pickle.BINGET + b"\1" + pickle.TUPLE2
    first = ADAPTIVE + pickle.MEMOIZE + pickle.POP + value({"seed": 1}) + pickle.MEMOIZE + pickle.POP
    data = program(first, *[one + pickle.REDUCE for _ in range(20_000)])
    assert "asks for more memory" in outcome(data)
    window = name("river._river_rust.drift", "AdaptiveWindowing") + pickle.MEMOIZE + pickle.POP
    window += value((0.002, 32, 1 << 20, 5, 10)) + pickle.MEMOIZE + pickle.POP
    data = program(window, *[pickle.BINGET + b"\0" + pickle.BINGET + b"\1" + pickle.NEWOBJ for _ in range(20_000)])
    assert "asks for more memory" in outcome(data)
