"""Pickles by hand, what a standard pickler would never write, and a reader that watches what reading runs.

Two things are watched: a sentinel file that the gadgets would make, and the interpreter's own audit events for files,
processes, sockets and code.
"""

import io
import pickle
import random
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from river import compose, ensemble, linear_model, multiclass, naive_bayes, neighbors, preprocessing, tree

from streamkernel import KernelClassifier
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.payload import dump_model
from streamkernel.daemon.checkpoints.unpickler import loads

WATCHED = ("compile", "ctypes.", "exec", "open", "os.", "shutil.", "socket.", "subprocess.", "tempfile.", "urllib.")
_events: list[str] | None = None
_reader = threading.get_ident()


def _hook(event: str, _: Any) -> None:
    if _events is not None and event.startswith(WATCHED) and threading.get_ident() == _reader:
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


def made(function: str, *arguments: Any) -> bytes:
    """What a payload has for an array, a number or a generator of numpy."""
    return call(name("streamkernel.daemon.checkpoints.arrays", function), *map(value, arguments))


def written(model: Any) -> bytes:
    return dump_model(model).partition(b"\n")[2]


def learned(model: Any) -> Any:
    rng = random.Random(1)
    for _ in range(120):
        x = {"a": rng.gauss(0, 1), "b": rng.random()}
        model.learn_one(x, x["a"] > 0)
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "pipeline": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "bayes": lambda: naive_bayes.GaussianNB(),
    "one against rest": lambda: multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    "neighbors": lambda: neighbors.KNNClassifier(3),
    "bagging": lambda: ensemble.ADWINBaggingClassifier(tree.HoeffdingTreeClassifier(grace_period=20), 2, seed=1),
    "ours": lambda: (
        compose.TransformerUnion(compose.Select("a"), preprocessing.MinMaxScaler())
        | KernelClassifier(seed=1, max_features=64)
    ),
}
