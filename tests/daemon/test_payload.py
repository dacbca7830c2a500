"""Models as bytes and back, and the difference to the configuration named."""

from __future__ import annotations

import functools
import importlib
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import (
    base,
    compose,
    datasets,
    ensemble,
    forest,
    linear_model,
    multiclass,
    naive_bayes,
    optim,
    preprocessing,
    proba,
    tree,
)

from streamkernel import KernelClassifier, KernelRegressor, growth, kernels, state
from streamkernel.daemon.base.errors import CheckpointError, OtherModelError
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from streamkernel.daemon.checkpoints.unpickler import permits

RECORDS = list(datasets.Phishing().take(200))


def ours(**arguments: Any) -> KernelClassifier:
    return KernelClassifier(
        kernel=kernels.Gaussian(1.5),
        growth=growth.CDSG(cap=1.5),
        step=optim.schedulers.InverseScaling(0.5),
        **{"seed": 1, "max_features": 512, **arguments},
    )


MODELS: dict[str, Callable[[], Any]] = {
    "bare": ours,
    "in a pipeline": lambda: preprocessing.StandardScaler() | ours(),
    "behind a union": lambda: compose.Pipeline(compose.Select("is_popular") + preprocessing.MinMaxScaler(), ours()),
    "in a bag": lambda: ensemble.BaggingClassifier(ours(), n_models=3, seed=1),
    "one against rest": lambda: multiclass.OneVsRestClassifier(ours()),
    "among voters": lambda: ensemble.VotingClassifier([ours(), naive_bayes.GaussianNB(), ours(seed=2)]),
    "River alone": lambda: forest.ARFClassifier(n_models=3, seed=1),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_restored_model_goes_on_as_the_original(kind: str) -> None:
    model = MODELS[kind]()
    for x, y in RECORDS[:150]:
        model.learn_one(x, y)
    restored = load_model(dump_model(model), MODELS[kind]())
    for x, y in RECORDS[150:]:
        assert restored.predict_one(x) == model.predict_one(x)
        if kind != "among voters":
            assert restored.predict_proba_one(x) == model.predict_proba_one(x)
        restored.learn_one(x, y)
        model.learn_one(x, y)


DIFFERENCES: list[tuple[Callable[[], Any], Callable[[], Any], str]] = [
    (
        ours,
        lambda: KernelClassifier(kernel=kernels.Gaussian(1.5), growth=growth.UDSG(), seed=1, max_features=512),
        r"model\[0\].growth: checkpoint has streamkernel.growth.cdsg.CDSG, configuration says",
    ),
    (ours, lambda: ours(max_features=1024), r"model\[0\].max_features: checkpoint has 512, configuration says 1024"),
    (
        MODELS["in a pipeline"],
        lambda: preprocessing.StandardScaler() | ours(max_features=1024),
        r"model\[1\].max_features: checkpoint has 512, configuration says 1024",
    ),
    (
        MODELS["in a pipeline"],
        lambda: preprocessing.MinMaxScaler() | ours(),
        r"model\[0\]: checkpoint has river.preprocessing.scale.StandardScaler, configuration says river.*MinMaxScaler",
    ),
    (
        MODELS["in a bag"],
        lambda: ensemble.BaggingClassifier(ours(seed=2), 3, 1),
        r"model\[0\].model.seed: checkpoint has 1",
    ),
    (
        MODELS["among voters"],
        lambda: ensemble.VotingClassifier([ours(), naive_bayes.GaussianNB()]),
        r"model\[0\].models: checkpoint has 3 entries, configuration says 2 entries",
    ),
    (
        lambda: linear_model.LogisticRegression(optim.SGD(0.1)),
        lambda: linear_model.LogisticRegression(optim.SGD(0.2)),
        r"model\[0\].optimizer.lr.learning_rate: checkpoint has 0.1, configuration says 0.2",
    ),
    (
        lambda: compose.Select("a", "b") | linear_model.Perceptron(),
        lambda: compose.Select("a", "c") | linear_model.Perceptron(),
        r"model\[0\]: checkpoint has \[\"'a'\", \"'b'\"\], configuration says",
    ),
    (ours, MODELS["in a pipeline"], "than the configuration: an estimator of streamkernel alone"),
    (
        MODELS["in a pipeline"],
        ours,
        r"model\[0\]: checkpoint has river.*StandardScaler, configuration says streamkernel",
    ),
    (naive_bayes.GaussianNB, ours, r"model\[0\]: checkpoint has river.naive_bayes.gaussian.GaussianNB"),
    (
        lambda: preprocessing.StandardScaler() | ours(),
        lambda: preprocessing.StandardScaler() | preprocessing.MinMaxScaler() | ours(),
        r"model\[1\]: checkpoint has streamkernel.*KernelClassifier, configuration says river.*MinMaxScaler",
    ),
]


@pytest.mark.parametrize(("before", "now", "message"), DIFFERENCES)
def test_another_configuration_is_refused_with_the_difference(
    before: Callable[[], Any], now: Callable[[], Any], message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        load_model(dump_model(before()), now())


# What cannot be restored is refused when it is written.


class Local(base.Transformer):
    """A class of a module that is not on the list."""

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        return x


def _triple(x: dict[Any, Any]) -> dict[Any, Any]:
    return {key: 3 * value for key, value in x.items()}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (Local(), "holds tests.daemon.test_payload.Local, which a checkpoint cannot restore: put it into a package"),
        (compose.FuncTransformer(_triple), "holds tests.daemon.test_payload._triple"),
        (compose.FuncTransformer(lambda x: x), "holds tests.daemon.test_payload.<lambda>"),
        (compose.FuncTransformer(eval), "holds builtins.eval"),
        (compose.FuncTransformer(functools.partial(_triple)), "holds a partial of tests.daemon.test_payload._triple"),
        (compose.FuncTransformer(str.upper), "holds the method str.upper"),
        (compose.FuncTransformer({}.update), "holds None.dict.update"),
        (compose.FuncTransformer(Local().transform_one), "holds the bound method .*Local.transform_one"),
        (compose.FuncTransformer(x for x in ()), "holds something that cannot be written: cannot pickle 'generator'"),
        (compose.FuncTransformer(datasets.Bananas()), "holds river.datasets.bananas.Bananas"),
        (compose.FuncTransformer(np.random.default_rng(1)), "holds numpy.random._pickle.__generator_ctor"),
    ],
)
def test_what_could_not_be_restored_is_not_written(part: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        dump_model(part | linear_model.LogisticRegression())


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "ours_too.py").write_text(
        "from river import base\n"
        "class Scale(base.Transformer):\n"
        "    def __init__(self, by=2):\n"
        "        self.by = by\n"
        "    def learn_one(self, x):\n"
        "        self.by += 1\n"
        "    def transform_one(self, x):\n"
        "        return {k: v * self.by for k, v in x.items()}\n"
        "class Made:\n"
        "    def __reduce__(self):\n"
        "        return double, ({},)\n"
        "def double(x):\n"
        "    return {k: 2 * v for k, v in x.items()}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("ours_too")
    del sys.modules["ours_too"]


def test_packages_under_imports_are_written_and_restored(package: Any) -> None:
    def make() -> Any:
        return compose.Pipeline(package.Scale(3), compose.FuncTransformer(package.double), ours())

    model = make()
    for x, y in RECORDS[:50]:
        model.learn_one(x, y)
    with pytest.raises(CheckpointError, match=r"holds ours_too\.Scale"):
        dump_model(model)
    data = dump_model(model, ["ours_too"])
    with pytest.raises(CheckpointError, match=r"names ours_too\.Scale"):
        load_model(data, make())
    with pytest.raises(CheckpointError, match=r"holds a ours_too\.Made, made by the function ours_too\.double"):
        dump_model(compose.FuncTransformer(package.Made()), ["ours_too"])
    restored = load_model(data, make(), ["ours_too"])
    assert restored.transform_one({"a": 1}) == model.transform_one({"a": 1}) == {"a": 2 * 53}


def test_a_tree_that_is_one_long_branch_is_written() -> None:
    def make() -> Any:
        return compose.Select("time") | tree.HoeffdingTreeRegressor(grace_period=10**6)

    model = make()
    for second in range(1500):
        model.learn_one({"time": second}, float(second % 7))
    node, depth = model["HoeffdingTreeRegressor"]._root.splitters["time"]._root, 0
    while node is not None:
        node, depth = node._right, depth + 1
    assert depth == 1500
    restored = load_model(dump_model(model), make())
    for second in range(1500, 1600):
        assert restored.predict_one({"time": second}) == model.predict_one({"time": second})
        restored.learn_one({"time": second}, 1.0)
        model.learn_one({"time": second}, 1.0)


# Whatever the bytes are.


def test_bytes_of_any_origin_raise_one_kind_of_error() -> None:
    good = dump_model(ours())
    head, _, body = good.partition(b"\n")
    described = json.loads(head)
    spoiled = state.from_bytes(body)
    spoiled["version"] = 99
    for data in (
        b"",
        b"\n",
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"[" * 100_000,
        b'{"kind": "other"}\n',
        b'{"kind": "state"}\n',
        b'{"kind": "state", "structure": []}\n' + body,
        b'{"kind": "pickle"}\n',
        b'{"kind": "pickle"}\n' + pickle.dumps(eval, 5),
        b'{"kind": "pickle"}\n' + pickle.dumps(ours, 5),
        b'{"kind": "pickle"}\n' + pickle.dumps({"a": 1}, 5),
        good[:-1],
        good + b"\0",
        head + b"\n" + state.to_bytes({}),
        head + b"\n" + state.to_bytes(spoiled),
        json.dumps({**described, "structure": {}}).encode() + b"\n" + body,
    ):
        with pytest.raises(CheckpointError):
            load_model(data, ours())


def test_every_estimator_kernel_growth_and_loss_of_ours_may_be_held() -> None:
    def subclasses(cls: type) -> Iterator[type]:
        for one in cls.__subclasses__():
            yield one
            yield from subclasses(one)

    held = {
        cls
        for cls in subclasses(base.Base)
        if cls.__module__.startswith("streamkernel.")
        and not getattr(cls, "__abstractmethods__", None)
        and not issubclass(cls, proba.base.Distribution)  # what a model answers, not what it holds
    }
    assert {KernelClassifier, KernelRegressor, kernels.Gaussian, growth.CDSG} <= held
    assert [cls for cls in held if not permits(cls.__module__, cls.__qualname__)] == []


def _plain(**given: Any) -> KernelClassifier:
    return KernelClassifier(kernels.Gaussian(1.0), **{"seed": 1, "batch_size": 8, **given})


@pytest.mark.parametrize("given", [{"block_size": 256, "precondition": False}, {"blocks_per_step": 5}], ids=str)
def test_what_a_configuration_leaves_open_is_that_of_a_payload_bare_and_in_a_pipeline(given: dict[str, Any]) -> None:
    bare, inside = _plain(**given), preprocessing.StandardScaler() | _plain(**given)
    for x, y in RECORDS[:50]:
        bare.learn_one(x, y)
        inside.learn_one(x, y)
    assert load_model(dump_model(bare), _plain()).state_digest() == bare.state_digest()
    restored = load_model(dump_model(inside), preprocessing.StandardScaler() | _plain())
    assert restored["KernelClassifier"].state_digest() == inside["KernelClassifier"].state_digest()


def test_what_was_left_open_may_be_written_out_as_what_it_came_to() -> None:
    for make in (_plain, lambda **given: preprocessing.StandardScaler() | _plain(**given)):
        data = dump_model(make())
        for given in ({"block_size": 64}, {"precondition": True, "blocks_per_step": 2}):
            load_model(data, make(**given))
        for name, now, before in (("block_size", 32, 64), ("precondition", False, True), ("blocks_per_step", 1, 2)):
            with pytest.raises(OtherModelError, match=f"{name}: checkpoint has {before}, configuration says {now}$"):
                load_model(data, make(**{name: now}))


@pytest.mark.parametrize("forged", [{"block_size": 10**12}, {"blocks_per_step": 10**9}, {"block_size": 1000}], ids=str)
def test_a_state_does_not_choose_how_large_the_steps_are(forged: dict[str, Any]) -> None:
    record = _plain(max_features=512).__getstate__()
    record["arguments"] = {**record["arguments"], **forged}
    record["alpha"] = np.zeros((0, 0, 2 * forged.get("block_size", 64)), np.float32)
    with pytest.raises(ValueError, match="its field 'arguments' is missing or impossible"):
        _plain(max_features=512).__setstate__(record)
