"""Payloads that would take more memory than they account for are refused."""

import os
import pickle
import resource
from typing import Any

import pytest

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.unpickler import loads
from tests.daemon.pickles import (
    LOGISTIC,
    array,
    buffer,
    build,
    call,
    dtype,
    load,
    name,
    new,
    program,
    refused,
    value,
)


def test_the_arrays_by_hand_are_arrays() -> None:
    assert load(program(array(value((2,)), dtype("i4"), value(bytes(8))))).tolist() == [0, 0]
    assert load(program(array(value((2,)), dtype("O8"), value([1, "a"])))).tolist() == [1, "a"]
    assert load(program(buffer(bytes(8), dtype("f8", (3, "<", None, None, None, -1, -1, 0)), (1, 1)))).shape == (1, 1)


def test_arrays_that_do_not_add_up(subtests: pytest.Subtests) -> None:
    for made in [
        array(value((1 << 50,)), dtype("f8"), value(b"")),
        array(value((1 << 50,)), dtype("O8"), value([])),
        array(value((1 << 62, 4)), dtype("f8"), value(b"")),
        array(value((0, 1 << 62)), dtype("f8"), value(b"")),
        array(value((-1,)), dtype("f8"), value(b"")),
        array(value((2,)), dtype("f8"), value(bytes(15))),
        array(value((2,)), dtype("O8"), value([1])),
        array(value((1,)), dtype("O8"), value(bytes(8))),
        array(value((1,)), dtype("f8"), value([1.0])),
        array(value(("2",)), dtype("f8"), value(bytes(16))),
        array(value([2]), dtype("f8"), value(bytes(16))),
        array(value((1,)), value("f8"), value(bytes(8))),
        build(array(value((1,)), dtype("f8"), value(bytes(8))), value((1, (1,), None, False, b""))),
        build(array(value((0,)), dtype("f8"), value(b"")), value({"shape": (1 << 50,)})),
        buffer(bytes(8), dtype("O8"), (1,)),
        buffer(bytes(8), dtype("f8"), (2,)),
        buffer(bytes(8), dtype("f8"), (-1,)),
        buffer(b"", dtype("f8"), (0, 1 << 62)),
        buffer(bytes(8), dtype("f8"), (1,), None),
        buffer("text", dtype("f8"), (1,)),
        dtype("V0"),
        dtype("V8"),
        dtype("U0"),
        dtype("O"),
        dtype("f8,f8"),
        dtype("(1000000000,)f8"),
        dtype("object"),
        dtype("f8", (3, ">", None, None, None, -1, -1, 0)),
        dtype("f8", (3, "|", None, ("a",), {"a": 1}, 8, 1, 0)),
        dtype("O8", (3, "|", None, None, None, 8, 1, 0)),
        dtype("f8", {"a": 1}),
        call(name("numpy", "dtype"), value([("a", "O")]), value(False), value(True)),
        call(name("numpy._core.multiarray", "scalar"), dtype("f8"), value(b"1234567")),
        call(name("numpy._core.multiarray", "scalar"), dtype("O8"), value("any")),
        call(name("numpy._core.multiarray", "scalar"), dtype("f8")),
        call(name("numpy._core.multiarray", "_reconstruct"), LOGISTIC, value((0,)), value(b"b")),
        call(name("numpy._core.multiarray", "_reconstruct"), name("numpy", "ndarray"), value((1 << 50,)), value(b"b")),
    ]:
        with subtests.test(made=made):
            refused(program(made))


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
