"""Names and opcodes in hostile pickles run nothing; a trusted package adds its own classes and functions."""

import copyreg
import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from river import linear_model

from tests.daemon.pickles import (
    GETATTR,
    LOGISTIC,
    PARTIAL,
    build,
    call,
    load,
    name,
    new,
    numbered,
    program,
    refused,
    value,
)

NAMES = """
    builtins:__import__ builtins:breakpoint builtins:classmethod builtins:compile builtins:delattr builtins:eval
    builtins:exec builtins:globals builtins:input builtins:locals builtins:memoryview builtins:object builtins:open
    builtins:print builtins:property builtins:setattr builtins:staticmethod builtins:super builtins:type builtins:vars
    _io:FileIO _io:open _pickle:loads asyncio:run bdb:Bdb code:interact codecs:open collections:namedtuple
    concurrent.futures:ProcessPoolExecutor copyreg:_reconstructor copyreg:add_extension ctypes:CDLL ctypes:cdll
    ctypes:string_at fileinput:input functools:reduce functools:singledispatch gc:get_objects imp:load_source
    importlib:import_module inspect:currentframe io:open itertools:starmap linecache:getline logging:FileHandler
    logging.config:dictConfig marshal:loads mmap:mmap multiprocessing:Process numpy:fromfile numpy:fromregex
    numpy:dtype numpy:genfromtxt numpy:load numpy:loadtxt numpy:memmap numpy:ndarray numpy:save
    numpy._core.multiarray:_reconstruct numpy._core.numeric:_frombuffer numpy.random._mt19937:MT19937
    numpy.ctypeslib:load_library
    numpy.f2py:compile numpy.lib:npyio numpy.lib.format:open_memmap numpy.memmap:memmap nt:system operator:attrgetter
    operator:call operator:methodcaller os:execv os:fork os:kill os:open os:popen os:remove os:system pathlib:Path
    pathlib:PosixPath pdb:run pickle:loads platform:popen posix:system profile:run pty:spawn pydoc:pipepager
    river.base.estimator:EstimatorMeta river.drift.datasets.base:DriftDataset
    river.utils.context_managers:log_method_calls
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


def test_names_that_are_not_listed(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for hostile in NAMES.split():
        with subtests.test(hostile=hostile):
            module, _, qualified = hostile.partition(":")
            sentinel = tmp_path / "owned"
            for argument in (f"touch {sentinel}", f"open({str(sentinel)!r}, 'w')", str(sentinel)):
                refused(program(call(name(module, qualified), value(argument))), f"names {module}.{qualified}")
            refused(program(name(module, qualified)), f"names {module}.{qualified}")
            assert not sentinel.exists()


def test_dotted_names_and_names_from_elsewhere(subtests: pytest.Subtests) -> None:
    for module, dotted in [
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
    ]:
        with subtests.test(module=module, dotted=dotted):
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
    monkeypatch.setattr("tests.daemon.pickles.loads", lambda data, _: pickle.loads(data))
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


def test_getattr_fetches_methods_that_river_defines(subtests: pytest.Subtests) -> None:
    for owner, attribute in [
        (new(LOGISTIC), "__class__"),
        (new(LOGISTIC), "__init__"),
        (new(LOGISTIC), "__reduce_ex__"),
        (new(LOGISTIC), "_get_params.__globals__"),
        (new(LOGISTIC), "weights"),
        (LOGISTIC, "__subclasses__"),
        (LOGISTIC, "__init__"),
        (LOGISTIC, "clone"),
        (name("builtins", "str"), "format"),
        (name("builtins", "dict"), "__class__"),
        (name("builtins", "dict"), "fromkeys"),
        (name("copy", "deepcopy"), "__globals__"),
        (name("copy", "deepcopy"), "__code__"),
        (name("river.naive_bayes.gaussian", "GaussianNB._make_gaussian"), "__builtins__"),
        (name("river.base.estimator", "Estimator"), "__subclasses__"),
        (GETATTR, "function"),
        (GETATTR, "build"),
        (value({}), "update"),
        (value("x"), "format"),
        (call(name("random", "Random")), "random"),
        (call(name("random", "Random")), "__class__"),
        (new(name("river.preprocessing.scale", "StandardScaler")), "_from_state"),
    ]:
        with subtests.test(owner=owner, attribute=attribute):
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
