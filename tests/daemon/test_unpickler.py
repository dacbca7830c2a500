"""Hostile pickles: each raises one clear error and runs nothing.

"Runs nothing" is watched in two ways: a sentinel file that the gadgets would make, and the interpreter's own audit
events for files, processes, sockets and code.
"""

from __future__ import annotations

import collections
import contextlib
import copyreg
import datetime
import functools
import importlib
import io
import math
import os
import pickle
import random
import resource
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from river import (
    compose,
    drift,
    ensemble,
    linear_model,
    metrics,
    multiclass,
    naive_bayes,
    neighbors,
    preprocessing,
    stats,
    tree,
    utils,
)
from river.utils.math import minkowski_distance

from streamkernel import KernelClassifier
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.checkpoints.payload import dump_model
from streamkernel.daemon.checkpoints.unpickler import loads

WATCHED = ("compile", "ctypes.", "exec", "open", "os.", "shutil.", "socket.", "subprocess.", "tempfile.", "urllib.")
_events: list[str] | None = None


def _hook(event: str, _: Any) -> None:
    if _events is not None and event.startswith(WATCHED):
        _events.append(event)


sys.addaudithook(_hook)


def load(data: bytes, packages: tuple[str, ...] = ()) -> Any:
    """Read a payload, and assert that nothing but reading went on."""
    global _events
    _events = []
    try:
        return loads(data, packages)
    finally:
        seen, _events = _events, None
        assert not seen, seen


def refused(data: bytes, why: str = "the payload ", packages: tuple[str, ...] = ()) -> None:
    with pytest.raises(CheckpointError, match=why):
        load(data, packages)


def numbered(case: Any) -> str | None:
    """Leave the bytes of a pickle out of the names of tests."""
    return "pickle" if isinstance(case, bytes | tuple) else None


# Pickles by hand: what the standard pickler would never write.


def text(value: str) -> bytes:
    data = value.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def name(module: str, qualified: str) -> bytes:
    return text(module) + text(qualified) + pickle.STACK_GLOBAL


def value(plain: Any) -> bytes:
    """The opcodes of a value that the standard pickler can write, without its frame."""
    file = io.BytesIO()
    pickler = pickle._Pickler(file, 5)
    pickler.framer.start_framing = lambda: None  # type: ignore[attr-defined]
    pickler.fast = True
    pickler.dump(plain)
    return file.getvalue()[2:-1]


def call(function: bytes, *arguments: bytes) -> bytes:
    return function + pickle.MARK + b"".join(arguments) + pickle.TUPLE + pickle.REDUCE


def new(cls: bytes, *arguments: bytes) -> bytes:
    return cls + pickle.MARK + b"".join(arguments) + pickle.TUPLE + pickle.NEWOBJ


def build(target: bytes, state: bytes) -> bytes:
    return target + state + pickle.BUILD


def program(*parts: bytes) -> bytes:
    return pickle.PROTO + b"\x05" + b"".join(parts) + pickle.STOP


LOGISTIC = name("river.linear_model.log_reg", "LogisticRegression")
GETATTR = name("builtins", "getattr")
PARTIAL = name("functools", "partial")

NAMES = """
    builtins:__import__ builtins:breakpoint builtins:classmethod builtins:compile builtins:delattr builtins:eval
    builtins:exec builtins:globals builtins:input builtins:locals builtins:memoryview builtins:object builtins:open
    builtins:print builtins:property builtins:setattr builtins:staticmethod builtins:super builtins:type builtins:vars
    _io:FileIO _io:open _pickle:loads asyncio:run bdb:Bdb code:interact codecs:open collections:namedtuple
    concurrent.futures:ProcessPoolExecutor copyreg:_reconstructor copyreg:add_extension ctypes:CDLL ctypes:cdll
    ctypes:string_at fileinput:input functools:reduce functools:singledispatch gc:get_objects imp:load_source
    importlib:import_module inspect:currentframe io:open itertools:starmap linecache:getline logging:FileHandler
    logging.config:dictConfig marshal:loads mmap:mmap multiprocessing:Process numpy:fromfile numpy:fromregex
    numpy:genfromtxt numpy:load numpy:loadtxt numpy:memmap numpy:save numpy.ctypeslib:load_library
    numpy.f2py:compile numpy.lib:npyio numpy.lib.format:open_memmap numpy.memmap:memmap nt:system operator:attrgetter
    operator:call operator:methodcaller os:execv os:fork os:kill os:open os:popen os:remove os:system pathlib:Path
    pathlib:PosixPath pdb:run pickle:loads platform:popen posix:system profile:run pty:spawn pydoc:pipepager
    river:checks river.api:datasets river.bandit.datasets.news:NewsArticles river.checks:check_estimator river.checks:np
    river.checks.np:memmap river.compat.sklearn_to_river:SKL2RiverClassifier river.datasets:Bananas
    river.datasets.base:FileDataset river.datasets.base:RemoteDataset river.datasets.bananas:Bananas
    river.evaluate:progressive_val_score river.stream:Cache river.stream.cache:Cache river.stream.iter_csv:iter_csv
    river.stream:iter_sql river.stream.twitch_chat_stream:TwitchChatStream runpy:run_path shelve:open shutil:rmtree
    signal:pthread_kill site:main smtplib:SMTP socket:socket sqlite3:connect
    streamkernel.daemon.checkpoints.store:CheckpointStore streamkernel.daemon.base.crash:point
    streamkernel.daemon.checkpoints.unpickler:loads
    streamkernel.state:from_bytes
    subprocess:Popen subprocess:run sys:exit sys:settrace tempfile:mktemp threading:Thread timeit:timeit types:CodeType
    types:FunctionType urllib.request:urlopen uuid:_get_command_stdout weakref:finalize webbrowser:open zipfile:ZipFile
"""


@pytest.mark.parametrize("hostile", NAMES.split())
def test_names_that_are_not_listed(hostile: str, tmp_path: Path) -> None:
    module, _, qualified = hostile.partition(":")
    sentinel = tmp_path / "owned"
    for argument in (f"touch {sentinel}", f"open({str(sentinel)!r}, 'w')", str(sentinel)):
        refused(program(call(name(module, qualified), value(argument))), f"names {module}.{qualified}")
    refused(program(name(module, qualified)), f"names {module}.{qualified}")
    assert not sentinel.exists()


@pytest.mark.parametrize(
    ("module", "dotted"),
    [
        ("river.checks", "np.memmap"),
        ("river.linear_model.log_reg", "LogisticRegression.__init__"),
        ("river.linear_model.log_reg", "LogisticRegression.__init__.__globals__"),
        ("river.linear_model.log_reg", "LogisticRegression.__subclasses__"),
        ("river.cluster.textclust", "TextClust.Distances.__init__.__globals__"),
        ("builtins", "str.format"),
        ("builtins", "dict.__class__.__subclasses__"),
        ("copy", "deepcopy.__globals__"),
        ("collections", "defaultdict.__class__"),
        ("river.naive_bayes.gaussian", "GaussianNB._make_gaussian.__globals__"),
        # listed names under modules that only import them
        ("river.linear_model", "LogisticRegression"),
        ("river.utils", "Rolling"),
        ("numpy", "float64"),
        ("streamkernel", "KernelClassifier"),
        ("", ""),
        ("river.linear_model.log_reg", ""),
    ],
)
def test_dotted_names_and_names_from_elsewhere(module: str, dotted: str) -> None:
    refused(program(name(module, dotted)), "names ")


class _System:
    def __init__(self, sentinel: Path) -> None:
        self.sentinel = sentinel

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (f"__import__('os').system('touch {self.sentinel}')",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_classic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int) -> None:
    sentinel = tmp_path / "owned"
    data = pickle.dumps({"a": _System(sentinel)}, protocol)
    refused(data)
    assert not sentinel.exists()
    monkeypatch.setitem(globals(), "loads", lambda data, _: pickle.loads(data))
    with pytest.raises(AssertionError, match=r"os\.system"):
        load(data)
    assert sentinel.exists()  # so the gadget is one, and the watch sees it


def test_opcodes_that_such_pickles_do_not_use() -> None:
    copyreg.add_extension("posix", "system", 240)
    try:
        for data in (
            b"cposix\nsystem\n.",
            b"(S'true'\niposix\nsystem\n.",
            b"(cposix\nsystem\nS'true'\no.",
            b"\x80\x02\x82\xf0.",
            b"\x80\x02\x83\xf0\x00.",
            b"\x80\x02\x84\xf0\x00\x00\x00.",
            b"Psome id\n.",
            program(value("some id"), pickle.BINPERSID),
            program(pickle.NEXT_BUFFER),
            program(value(b"x"), pickle.READONLY_BUFFER),
            b"I1\n.",
            b"L1L\n.",
            b"F1.5\n.",
            b"S'a'\n.",
            b"Va\n.",
            b"I1\np0\n.",
            program(value("a"), pickle.BINPUT, b"\x00"),
            program(value("a"), pickle.LONG_BINPUT, b"\xff\xff\xff\x7f"),
            program(value("a"), pickle.DUP),
            b"(l.",
            b"(d.",
            b"\x00.",
            b"\xff.",
        ):
            refused(data, "opcode that protocol 5 does not write")
    finally:
        copyreg.remove_extension("posix", "system", 240)


def test_a_newer_protocol_is_refused() -> None:
    refused(b"\x80\x06N.", "unsupported pickle protocol")


@pytest.mark.parametrize(
    ("owner", "attribute"),
    [
        (new(LOGISTIC), "__class__"),
        (new(LOGISTIC), "__init__"),
        (new(LOGISTIC), "__reduce_ex__"),
        (new(LOGISTIC), "learn_one"),
        (new(LOGISTIC), "weights"),
        (LOGISTIC, "__subclasses__"),
        (LOGISTIC, "__init__"),
        (LOGISTIC, "_from_state"),
        (LOGISTIC, "clone"),
        (name("builtins", "str"), "format"),
        (name("builtins", "dict"), "__class__"),
        (name("builtins", "dict"), "fromkeys"),
        (name("copy", "deepcopy"), "__globals__"),
        (name("copy", "deepcopy"), "__code__"),
        (name("river.naive_bayes.gaussian", "GaussianNB._make_gaussian"), "__builtins__"),
        (GETATTR, "function"),
        (GETATTR, "build"),
        (value({}), "update"),
        (value("x"), "format"),
        (call(name("random", "Random")), "random"),
        (call(name("random", "Random")), "__class__"),
        (new(name("river.preprocessing.scale", "StandardScaler")), "_from_state"),
    ],
    ids=numbered,
)
def test_getattr_fetches_listed_methods_only(owner: bytes, attribute: str) -> None:
    refused(program(call(GETATTR, owner, value(attribute))), f"fetches the attribute {attribute} of ")


@pytest.mark.parametrize(
    "arguments",
    [(), (LOGISTIC,), (LOGISTIC, value("clone"), value(None)), (LOGISTIC, value(3)), (LOGISTIC, LOGISTIC)],
    ids=numbered,
)
def test_getattr_takes_an_owner_and_a_name(arguments: tuple[bytes, ...]) -> None:
    refused(program(call(GETATTR, *arguments)))


def test_a_method_comes_from_the_class_not_from_what_the_pickle_put_there() -> None:
    owner = build(new(LOGISTIC), value({"clone": "mine", "_mutable_attributes": 1}))
    method = load(program(call(GETATTR, owner, value("clone"))))
    assert method.__func__ is linear_model.LogisticRegression.clone


@pytest.mark.parametrize(
    "given",
    [
        LOGISTIC + value({}),
        name("streamkernel.estimators.classifier", "KernelClassifier") + value({"seed": [[]]}),
        name("streamkernel.estimators.classifier", "KernelClassifier") + value({"seed": {}}),
        name("streamkernel.estimators.classifier", "KernelClassifier") + value({1: 2}),
        name("streamkernel.estimators.classifier", "KernelClassifier") + value({"no_such_argument": 2}),
        name("streamkernel.estimators.classifier", "KernelClassifier") + value([]),
        name("streamkernel.estimators.classifier", "KernelClassifier") + value({"kernel": 3}),
    ],
    ids=numbered,
)
def test_our_own_estimators_are_made_with_arguments_of_theirs(given: bytes) -> None:
    refused(program(name("streamkernel.state", "rebuild"), given, pickle.TUPLE2, pickle.REDUCE))


def test_what_a_shim_stands_for_is_never_handed_out() -> None:
    found = load(program(GETATTR, PARTIAL, pickle.TUPLE2))
    assert getattr not in found
    assert not callable(found[0])
    refused(program(call(name("collections", "defaultdict"), GETATTR)), "default factory")
    refused(program(build(GETATTR, value({"build": 1}))), "sets attributes")
    refused(program(call(call(GETATTR, LOGISTIC, value("clone")), value("x"))))


@pytest.mark.parametrize(
    "target",
    [
        GETATTR,
        PARTIAL,
        LOGISTIC,
        name("builtins", "dict"),
        name("math", "exp"),
        name("river.naive_bayes.gaussian", "GaussianNB._make_gaussian"),
        name("collections", "Counter"),
        call(PARTIAL, name("builtins", "float")),
        new(LOGISTIC),
        value("text"),
        value(None),
    ],
    ids=numbered,
)
def test_partial_takes_listed_targets_only(target: bytes) -> None:
    refused(program(call(PARTIAL, target)), "gives a partial")


def test_the_state_of_a_partial_cannot_change_its_target() -> None:
    made = call(PARTIAL, name("copy", "deepcopy"))
    other = pickle.MARK + name("builtins", "float") + value(()) + value({}) + value(None) + pickle.TUPLE
    refused(program(build(made, other)), "gives a partial")
    good = pickle.MARK + name("copy", "deepcopy") + value((1,)) + value({}) + value(None) + pickle.TUPLE
    assert load(program(build(made, good)))() == 1
    for bad in (value(()), value({}), value((1, 2, 3, 4)), value(None)):
        refused(program(build(made, bad)), "gives a partial")
    with_attributes = pickle.MARK + name("copy", "deepcopy") + value(()) + value({}) + value({"a": 1}) + pickle.TUPLE
    refused(program(build(made, with_attributes)), "gives a partial")


@pytest.mark.parametrize(
    ("function", "arguments"),
    [("ones", (1 << 60,)), ("ones", ((1 << 30, 1 << 30),)), ("array", ("x",)), ("array", ([1.0], "O")), ("ones", ())],
)
def test_a_partial_of_numpy_holds_small_numbers(function: str, arguments: tuple[Any, ...]) -> None:
    target = name("numpy", function)
    state = pickle.MARK + target + value(arguments) + value({}) + value(None) + pickle.TUPLE
    refused(program(build(call(PARTIAL, target), state)), "gives a partial")


@pytest.mark.parametrize(
    "target",
    [
        LOGISTIC,
        name("builtins", "dict"),
        name("copy", "deepcopy"),
        name("river.utils.math", "minkowski_distance"),
        name("river.naive_bayes.gaussian", "GaussianNB._make_gaussian"),
        call(GETATTR, new(LOGISTIC), value("clone")),
        name("streamkernel.estimators.classifier", "KernelClassifier"),
        value(None),
        value([]),
        value({}),
        value("text"),
        value(1.5),
        call(name("collections", "OrderedDict")),
        call(name("collections", "deque")),
    ],
    ids=numbered,
)
def test_attributes_are_set_on_instances_made_by_the_pickle_only(target: bytes) -> None:
    before = dict(vars(linear_model.LogisticRegression)), dict(vars(minkowski_distance)), minkowski_distance.__code__
    for state in (
        value({"learn_one": 1}),
        value((None, {"learn_one": 1})),
        value((None, {"__code__": 1, "__defaults__": (1,)})),
        value(({"__doc__": "x"}, {"__init__": 1})),
    ):
        refused(program(build(target, state)))
    assert before == (
        dict(vars(linear_model.LogisticRegression)),
        dict(vars(minkowski_distance)),
        minkowski_distance.__code__,
    )


@pytest.mark.parametrize(
    "state",
    [
        {"__class__": 1},
        {"__dict__": {}},
        {"__reduce_ex__": 1},
        {"__setstate__": 1},
        {"__deepcopy__": 1},
        {"__private": 1},
        {1: 2},
        {b"a": 2},
        [],
        "text",
        ({}, {}, {}),
        (1, {}),
        ({}, 1),
        (None, {"__class__": 1}),
        (None, {"learn_one": 1}),
        (None, {"weights": 1}),
    ],
)
def test_attributes_have_plain_names_and_slots_exist(state: Any) -> None:
    refused(program(build(new(LOGISTIC), value(state))), "gives LogisticRegression a value of the wrong kind")


def test_classes_of_river_are_not_called() -> None:
    rolling = name("river.utils.rolling", "Rolling")
    for made in (
        call(rolling, name("builtins", "dict"), value(3)),
        call(LOGISTIC),
        new(LOGISTIC, value(1)),
        call(name("river.compose.func", "FuncTransformer"), name("builtins", "dict")),
        call(name("builtins", "dict"), value([])),
        call(name("builtins", "int"), value("9" * 4000)),
        call(name("builtins", "bytes"), value(1 << 40)),
        new(name("builtins", "bytes"), value(1 << 40)),
        new(name("builtins", "list")),
        call(name("copy", "deepcopy"), value([])),
        call(name("math", "exp"), value(1.0)),
        call(name("numpy", "ones"), value(1 << 40)),
        call(name("numpy", "ndarray"), value((1 << 40,))),
        new(name("numpy", "ndarray"), value((1 << 40,))),
        call(name("numpy.random._mt19937", "MT19937"), value(1)),
        call(value("text"), value(1)),
        call(new(LOGISTIC)),
        new(value("text")),
        new(GETATTR, LOGISTIC, value("clone")),
        new(name("numbers", "Number")),
    ):
        refused(program(made), r"calls .* with \d arguments")
    refused(program(LOGISTIC, value(()), value({}), pickle.NEWOBJ_EX), "gives a class")
    refused(program(LOGISTIC, value([]), pickle.REDUCE), "gives a constructor")
    refused(program(LOGISTIC, value([]), pickle.NEWOBJ), "gives a constructor")


@pytest.mark.parametrize(
    "data",
    [
        program(new(LOGISTIC), value(1), pickle.APPEND),
        program(build(new(LOGISTIC), value({"append": 1, "extend": 2})), value(1), pickle.APPEND),
        program(new(LOGISTIC), pickle.MARK, value(1), pickle.APPENDS),
        program(new(LOGISTIC), value(1), value(2), pickle.SETITEM),
        program(value([1]), value(0), value(2), pickle.SETITEM),
        program(new(LOGISTIC), pickle.MARK, value(1), value(2), pickle.SETITEMS),
        program(new(LOGISTIC), pickle.MARK, value(1), pickle.ADDITEMS),
        program(value([]), pickle.MARK, value(1), pickle.ADDITEMS),
        program(value({}), pickle.MARK, value(1), pickle.SETITEMS),
        program(LOGISTIC, value(1), value(2), pickle.SETITEM),
    ],
    ids=numbered,
)
def test_items_go_into_lists_dictionaries_and_sets_only(data: bytes) -> None:
    refused(data)


@pytest.mark.parametrize(
    "data",
    [
        program(pickle.BYTEARRAY8, struct.pack("<Q", 1 << 40), b"abc"),
        program(pickle.BYTEARRAY8, struct.pack("<Q", (1 << 64) - 1), b"abc"),
        program(pickle.BINBYTES8, struct.pack("<Q", 1 << 40), b"abc"),
        program(pickle.BINUNICODE8, struct.pack("<Q", 1 << 40), b"abc"),
        program(pickle.LONG4, struct.pack("<i", 1 << 30), b"abc"),
        program(pickle.LONG4, struct.pack("<i", -5)),
        program(pickle.FRAME, struct.pack("<Q", 1 << 60)),
        program(pickle.LONG_BINGET, struct.pack("<I", 1 << 31)),
        program(pickle.MEMOIZE),
        program(pickle.POP),
        program(pickle.TUPLE3),
        program(pickle.STACK_GLOBAL),
        program(value(1), value(2), pickle.STACK_GLOBAL),
        b"",
        b"\x80",
        b"\x80\x05",
        program(),
        b"N",
    ],
    ids=numbered,
)
def test_lengths_that_lie_and_stacks_that_run_dry(data: bytes) -> None:
    refused(data)


def dtype(code: str, state: Any = None) -> bytes:
    made = call(name("numpy", "dtype"), value(code), value(False), value(True))
    return made if state is None else build(made, value(state))


def array(shape: bytes, kind: bytes, data: bytes) -> bytes:
    empty = call(name("numpy._core.multiarray", "_reconstruct"), name("numpy", "ndarray"), value((0,)), value(b"b"))
    return build(empty, pickle.MARK + value(1) + shape + kind + value(False) + data + pickle.TUPLE)


def buffer(data: bytes, kind: bytes, shape: Any, order: Any = "C") -> bytes:
    return call(name("numpy._core.numeric", "_frombuffer"), value(data), kind, value(shape), value(order))


def test_the_arrays_by_hand_are_arrays() -> None:
    assert load(program(array(value((2,)), dtype("i4"), value(bytes(8))))).tolist() == [0, 0]
    assert load(program(array(value((2,)), dtype("O8"), value([1, "a"])))).tolist() == [1, "a"]
    assert load(program(buffer(bytes(8), dtype("f8", (3, "<", None, None, None, -1, -1, 0)), (1, 1)))).shape == (1, 1)


@pytest.mark.parametrize(
    "made",
    [
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
    ],
    ids=numbered,
)
def test_arrays_that_do_not_add_up(made: bytes) -> None:
    refused(program(made))


def test_references_do_not_multiply_memory() -> None:
    data = value({i: float(i) for i in range(20_000)})
    vector = name("river._river_rust.vectordict", "VectorDict")
    once = pickle.BINGET + b"\x00" + value(None) + value(None) + value(True)
    many = program(data, pickle.MEMOIZE, *[call(vector, once) + pickle.POP for _ in range(500)])
    refused(many, "asks for more memory than its length accounts for")
    assert len(load(program(data, pickle.MEMOIZE, call(vector, once)))) == 20_000


def test_keys_that_would_be_hashed_for_ever() -> None:
    doubled = value("a") + b"".join(pickle.MEMOIZE + pickle.BINGET + bytes([i]) + pickle.TUPLE2 for i in range(60))
    load(program(doubled))
    refused(program(pickle.EMPTY_DICT, doubled, value(1), pickle.SETITEM), "dictionary key")
    refused(program(pickle.EMPTY_SET, pickle.MARK, doubled, pickle.ADDITEMS), "dictionary key")
    refused(program(pickle.MARK, doubled, pickle.FROZENSET), "dictionary key")


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


def nested(depth: int, level: bytes, inner: bytes = b"") -> bytes:
    return (inner or value(0)) + depth * level


def fetch(number: int) -> bytes:
    return pickle.LONG_BINGET + struct.pack("<I", number)


FORGET = pickle.MEMOIZE + pickle.POP


def arrays(depth: int) -> bytes:
    """Arrays of objects, each in the next."""
    around = [array(value((1,)), dtype("O8"), pickle.EMPTY_LIST + fetch(n) + pickle.APPEND) for n in range(depth)]
    return program(value(0), FORGET, *(one + FORGET for one in around), value(None))


def held(made: bytes, depth: int, backwards: bool) -> bytes:
    """Containers in one another, filled from the inside out or the other way round."""
    numbers = range(depth - 1)
    before, after = (value(1), pickle.SETITEM) if made is DEFAULT else (b"", pickle.APPEND)
    filled = [fetch(n + 1) + before + fetch(n) + after + pickle.POP for n in (numbers[::-1] if backwards else numbers)]
    return program(*(made + FORGET for _ in range(depth)), *filled, value(None))


DEQUE = call(name("collections", "deque"))
DEFAULT = call(name("collections", "defaultdict"), value(None))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (program(pickle.EMPTY_DICT, nested(200_000, pickle.TUPLE1), value(1), pickle.SETITEM), "key that is nested"),
        (program(pickle.EMPTY_SET, pickle.MARK, nested(200_000, pickle.TUPLE1), pickle.ADDITEMS), "key that is nested"),
        (program(pickle.MARK, nested(200_000, pickle.TUPLE1), pickle.FROZENSET), "key that is nested"),
        (arrays(60_000), "nested too deeply"),
        (held(DEQUE, 60_000, backwards=False), "nested too deeply"),
        (held(DEFAULT, 60_000, backwards=True), "nested too deeply"),
        (program(nested(200_000, pickle.TUPLE1)), "restored"),
        (program(pickle.EMPTY_LIST * 100_000 + pickle.APPEND * 99_999), "restored"),
    ],
    ids=numbered,
)
def test_nothing_is_nested_so_deeply_that_the_process_ends(data: bytes, why: str) -> None:
    assert why in outcome(data)


REBUILD = name("streamkernel.state", "rebuild")
ADAPTIVE = name("streamkernel.estimators.adaptive_classifier", "AdaptiveKernelClassifier")


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


def test_many_estimators_take_no_more_memory_than_their_states_would() -> None:
    one = name("streamkernel.state", "rebuild") + pickle.BINGET + b"\0" + pickle.BINGET + b"\1" + pickle.TUPLE2
    first = ADAPTIVE + pickle.MEMOIZE + pickle.POP + value({"seed": 1}) + pickle.MEMOIZE + pickle.POP
    data = program(first, *[one + pickle.REDUCE for _ in range(20_000)])
    assert "asks for more memory" in outcome(data)
    window = name("river._river_rust.drift", "AdaptiveWindowing") + pickle.MEMOIZE + pickle.POP
    window += value((0.002, 32, 1 << 20, 5, 10)) + pickle.MEMOIZE + pickle.POP
    data = program(window, *[pickle.BINGET + b"\0" + pickle.BINGET + b"\1" + pickle.NEWOBJ for _ in range(20_000)])
    assert "asks for more memory" in outcome(data)


def test_a_class_of_a_package_that_is_not_listed_is_the_configuration_s_affair() -> None:
    with pytest.raises(UnfitError, match=r"names mine.models.Half.*listed under imports"):
        load(program(name("mine.models", "Half")))
    for module in ("os", "numpy", "river.datasets", "streamkernel.state", "posix", "", "a b"):
        with pytest.raises(CheckpointError) as caught:
            load(program(name(module, "Half")))
        assert not isinstance(caught.value, UnfitError)


@pytest.mark.parametrize(
    ("compiled", "arguments"),
    [
        ("stats:RsRollingQuantile", (0.5, 1 << 62)),
        ("stats:RsRollingQuantile", (0.5, 1 << 40)),
        ("stats:RsRollingQuantile", (float("nan"), 0)),
        ("stats:RsRollingIQR", (0.9, 0.1, 5)),
        ("stats:RsIQR", (0.9, 0.1)),
        ("stats:RsEWMean", ("0.5",)),
        ("drift:AdaptiveWindowing", (0.002, 32, (1 << 31) - 1, 5, 10)),
        ("drift:AdaptiveWindowing", (0.002, 32, -1, 5, 10)),
    ],
)
def test_the_compiled_parts_of_river_get_small_numbers(compiled: str, arguments: tuple[Any, ...]) -> None:
    module, _, qualified = compiled.partition(":")
    refused(program(new(name(f"river._river_rust.{module}", qualified), *map(value, arguments))))


@pytest.mark.parametrize("state", [b"", b"\xff" * 64, b"\x7f" * 400, "text", None, (1, 2)], ids=numbered)
def test_a_panic_in_the_compiled_parts_is_an_error(state: Any) -> None:
    window = name("river._river_rust.stats", "RsRollingQuantile")
    refused(program(build(new(window, value(0.5), value(3)), value(state))))


@pytest.mark.parametrize("position", [-1, 625, 1 << 40, "0", None])
def test_a_generator_reads_inside_its_table(position: Any) -> None:
    class Spoiled(pickle._Pickler):
        """Writes a generator whose position is not what it should be."""

        def save(self, obj: Any, save_persistent_id: bool = True) -> None:
            if isinstance(obj, dict) and set(obj) == {"key", "pos"}:
                obj = {**obj, "pos": position}
            super().save(obj, save_persistent_id)

    file = io.BytesIO()
    Spoiled(file, 5).dump(np.random.RandomState(1))
    refused(file.getvalue(), "generator")


LEAF = new(name("river.tree.nodes.htc_nodes", "LeafMajorityClass"))


def test_the_attributes_of_trees_follow() -> None:
    leaf = load(program(LEAF) + program(value([{"depth": 3}])))
    assert leaf.depth == 3
    pair = load(program(LEAF, LEAF, pickle.TUPLE2) + program(value([{"depth": 1}, {"depth": 2}])))
    assert [leaf.depth for leaf in pair] == [1, 2]
    inner = program(pickle.EMPTY_LIST, pickle.EMPTY_DICT, value("inner"), LEAF, pickle.SETITEM, pickle.APPEND)
    assert load(program(LEAF) + inner + program(value([{"depth": 4}]))).inner.depth == 4


@pytest.mark.parametrize(
    "states",
    [
        b"",
        program(value([])),
        program(value([{}, {}])),
        program(value({})),
        program(value([{"__class__": 1}])),
        program(value([{"__setstate__": 1}])),
        program(value([[]])),
        program(value([(None, {"learn_one": 1})])),
        program(name("os", "system")),
    ],
    ids=numbered,
)
def test_attributes_of_trees_are_as_plain_as_any(states: bytes) -> None:
    refused(program(LEAF) + states)


def test_a_cycle_is_no_trouble() -> None:
    loop: list[Any] = []
    loop.append((loop, {"loop": loop}))
    again = load(pickle.dumps(loop, 5))
    assert again[0][0] is again
    assert again[0][1]["loop"] is again


# What must come through.


def written(model: Any) -> bytes:
    return dump_model(model).partition(b"\n")[2]


def _learnt(model: Any) -> Any:
    rng = random.Random(1)
    for _ in range(120):
        x = {"a": rng.gauss(0, 1), "b": rng.random()}
        model.learn_one(x, x["a"] > 0)
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "pipeline": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "bayes": lambda: naive_bayes.GaussianNB(),
    "one against rest": lambda: multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    "neighbours": lambda: neighbors.KNNClassifier(3),
    "bagging": lambda: ensemble.ADWINBaggingClassifier(tree.HoeffdingTreeClassifier(grace_period=20), 2, seed=1),
    "ours": lambda: (
        compose.TransformerUnion(compose.Select("a"), preprocessing.MinMaxScaler())
        | KernelClassifier(seed=1, max_features=64)
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_comes_back(kind: str) -> None:
    model = _learnt(MODELS[kind]())
    x = {"a": 0.3, "b": 0.7}
    assert load(written(model)).predict_proba_one(x) == model.predict_proba_one(x)


@pytest.mark.parametrize(
    "part",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
        np.zeros((2, 0), np.uint8),
        np.array(["a", "bc"]),
        np.array([1, "a", None], object),
        np.float32(1.5),
        np.bool_(True),
        np.array(3),
        collections.Counter("abca"),
        collections.OrderedDict(a=1),
        collections.deque([1, 2, 3], maxlen=2),
        collections.defaultdict(float, a=1.0),
        frozenset({"a", ("b", 1)}),
        bytearray(b"abc"),
        range(1, 7, 2),
        1 << 200,
        datetime.date(2026, 2, 28),
        datetime.datetime(2026, 2, 28, 12, 30),
        datetime.datetime(2026, 2, 28, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        math.exp,
        int,
    ],
)
def test_parts_come_back(part: Any) -> None:
    again = load(pickle.dumps(part, 5))
    assert type(again) is type(part)
    assert np.array_equal(again, part)


@pytest.mark.parametrize(
    "part",
    [
        drift.ADWIN(),
        stats.RollingQuantile(0.5, 5),
        utils.Rolling(metrics.Accuracy, window_size=3),
        metrics.ROCAUC(),
        metrics.MacroF1(),
        functools.partial(minkowski_distance, p=2),
    ],
)
def test_generators_and_metrics_come_back(part: Any) -> None:
    assert type(load(pickle.dumps(part, 5))) is type(part)


def test_a_generator_goes_on_where_it_was() -> None:
    for rng in (random.Random(3), np.random.RandomState(3), np.random.RandomState()):
        again = load(pickle.dumps(rng, 5))
        assert [rng.gauss(0, 1) if isinstance(rng, random.Random) else rng.normal() for _ in range(5)] == [
            again.gauss(0, 1) if isinstance(rng, random.Random) else again.normal() for _ in range(5)
        ]


# Packages that the user trusts.


TRUSTED = """
import os
from posix import system
from river import base

class Half(base.Transformer):
    class Inner: pass
    def __init__(self, by=2): self.by = by
    def transform_one(self, x): return {k: v / self.by for k, v in x.items()}
    def bound(self): return self.by

class Pair(tuple):
    def __new__(cls, *, a, b): return super().__new__(cls, (a, b))
    def __getnewargs_ex__(self): return (), {"a": self[0], "b": self[1]}

class Counted:
    def __init__(self, n): self.n = n
    def __getstate__(self): return {"n": self.n}
    def __setstate__(self, state): self.n = state["n"] + 1

class Made:
    def __init__(self, n): self.n = n
    def __reduce__(self): return Made, (self.n,)

def double(x): return 2 * x
"""


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "models.py").write_text(TRUSTED)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mine.models")
    del sys.modules["mine"], sys.modules["mine.models"]


def test_a_trusted_package_adds_its_classes_and_functions(trusted: Any) -> None:
    made = [trusted.Half(4), trusted.Pair(a=1, b=2), trusted.Counted(1), trusted.Made(5)]
    data = pickle.dumps([*made, trusted.double, trusted.Half(3).bound], 5)
    refused(data, "names mine.models.Half")
    refused(data, "names mine.models.Half", ("min", "mine.models.Half", "other"))
    for packages in (("mine",), ("mine.models",)):
        half, pair, counted, five, double, bound = load(data, packages)
        assert half.transform_one({"a": 8}) == {"a": 2}
        assert (pair, counted.n, five.n, double(2), bound()) == ((1, 2), 2, 5, 4, 3)


@pytest.mark.usefixtures("trusted")
def test_what_a_trusted_package_imports_is_not_trusted() -> None:
    packages = ("mine", "river", "streamkernel")
    refused(program(name("mine.models", "system")), "no class or function of that module", packages)
    refused(program(name("mine.models", "os")), "no class or function of that module", packages)
    refused(program(name("mine.models", "nothing")), "no class or function of that module", packages)
    refused(program(name("mine.models", "os.system")), "names mine.models.os.system", packages)
    refused(program(name("mine.models", "Half.Inner")), "names mine.models.Half.Inner", packages)
    refused(program(name("minefield", "Half")), "names minefield.Half", packages)
    refused(program(call(name("mine.models", "double"), value(1))), "calls mine.models.double", packages)
    refused(program(build(name("mine.models", "Half"), value((None, {"by": 1})))), "sets attributes", packages)
    refused(program(name("river.datasets.bananas", "Bananas")), "names river.datasets", packages)
    refused(program(name("streamkernel.daemon.base.crash", "point")), "names streamkernel.daemon", packages)


# Fuzz.


@given(st.binary(max_size=300))
def test_random_bytes_raise_or_give_a_value(data: bytes) -> None:
    for prefix in (b"", b"\x80\x05"):
        with contextlib.suppress(CheckpointError):
            load(prefix + data)


CHANGES = ["change", "insert", "delete", "repeat"]
VALID = [written(_learnt(MODELS[kind]())) for kind in ("pipeline", "bayes", "neighbours", "bagging", "ours")]


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(VALID),
    st.lists(
        st.tuples(
            st.integers(0, 1 << 20), st.sampled_from(["change", "insert", "delete", "repeat"]), st.binary(max_size=9)
        )
    ),
)
def test_mutated_models_raise_or_give_a_value(data: bytes, changes: list[tuple[int, str, bytes]]) -> None:
    for place, kind, extra in changes:
        at = place % len(data) if data else 0
        if kind == "change":
            data = data[:at] + extra + data[at + len(extra) :]
        elif kind == "insert":
            data = data[:at] + extra + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + len(extra) :]
        else:
            data = data[: at + 40] + data[at:]
    with contextlib.suppress(CheckpointError):
        load(data)


OPCODES = [bytes([code]) for code in range(256) if bytes([code]) not in (pickle.PROTO, pickle.STOP)]
PIECES = st.one_of(
    st.sampled_from(OPCODES),
    st.sampled_from(
        [LOGISTIC, GETATTR, PARTIAL, new(LOGISTIC), name("collections", "defaultdict"), name("numpy", "dtype")]
    ),
    st.sampled_from([value(v) for v in (0, 1.5, "clone", "f8", b"b", (), {}, [], None, (0,), {"a": 1})]),
    st.builds(lambda i: pickle.BINGET + bytes([i]), st.integers(0, 3)),
)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=30))
def test_programs_of_real_pieces_raise_or_give_a_value(pieces: list[bytes]) -> None:
    with contextlib.suppress(CheckpointError):
        load(program(*pieces))
