"""Kernels in the daemon: from a configuration into checkpoints and back, and records that a kernel does not take."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from river import ensemble

from streamkernel import AdaptiveKernelClassifier, KernelClassifier
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from streamkernel.daemon.cli import main
from streamkernel.daemon.runtime import run
from streamkernel.kernels import ChiSquared, Gaussian, Laplacian, Mahalanobis, Polynomial, Scaled, SkewedChiSquared, Sum
from tests.daemon.conftest import Home


def _configured(home: Home, model: Any, lines: int) -> Any:
    with (home.folder / "stream.jsonl").open("w") as stream:
        for i in range(lines):
            stream.write(json.dumps({"a": (i % 7) / 2, "b": -1 if i in (3, 40) else i % 5, "y": i % 7 > 3}) + "\n")
    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y", "target_type": "bool"}
    return prepare(home.configure(source=source, model=[model]))


def _growing(kernel: Any) -> Any:
    return {"streamkernel.KernelClassifier": {"kernel": kernel, "batch_size": 8, "seed": 1}}


def _metric(number: float) -> Any:
    inner = {"streamkernel.kernels.Laplacian": {"bandwidth": 2}}
    metric = {"inputs": ["a", "b"], "metric": [[2.0, 0.5], [0.5, number]], "kernel": inner}
    return _growing({"streamkernel.kernels.Mahalanobis": metric})


def _sum(factor: float) -> Any:
    rough = {"streamkernel.kernels.Scaled": {"kernel": {"streamkernel.kernels.Laplacian": {}}, "factor": factor}}
    both = {"streamkernel.kernels.Sum": {"left": {"streamkernel.kernels.Gaussian": {}}, "right": rough}}
    return {"streamkernel.AdaptiveKernelClassifier": {"kernel": both, "n_features": 8, "seed": 1}}


METRIC = Mahalanobis(["a", "b"], [[2.0, 0.5], [0.5, 1.0]], Laplacian(2))


@pytest.mark.parametrize(
    ("step", "now", "other", "whole", "where"),
    [
        (_metric, 1.0, 3.0, KernelClassifier(kernel=METRIC, batch_size=8, seed=1), r"metric\[1\]\[1\]"),
        (
            _sum,
            0.5,
            0.25,
            AdaptiveKernelClassifier(kernel=Gaussian() + 0.5 * Laplacian(), n_features=8, seed=1),
            "right.factor",
        ),
    ],
    ids=["a learned metric", "a sum in an adaptive estimator"],
)
def test_a_kernel_of_parts_is_restored_and_told_from_another(
    home: Home, step: Callable[[float], Any], now: float, other: float, whole: Any, where: str
) -> None:
    run(_configured(home, step(now), 50))
    plan = _configured(home, step(now), 100)
    assert dict(run(plan).account)["learned"] == 100
    for i in range(100):
        whole.learn_one({"a": (i % 7) / 2, "b": -1 if i in (3, 40) else i % 5}, i % 7 > 3)
    assert plan.model.state_digest() == whole.state_digest()
    with pytest.raises(CheckpointError, match=rf"kernel.{where}: checkpoint has {now}, configuration says {other}"):
        run(_configured(home, step(other), 110))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ({"streamkernel.kernels.Laplacian": {"bandwidth": -2}}, "kernel.bandwidth: must be a positive number or None"),
        ({"streamkernel.kernels.Polynomial": {"degree": 0}}, "degree: must be a whole number from 1 to 32, got 0"),
        (
            {"streamkernel.kernels.Mahalanobis": {"inputs": ["a", "b"], "metric": [[1, 2], [2, 1]]}},
            "kernel.metric: must be positive semi-definite, its least eigenvalue is -1",
        ),
        ({"streamkernel.kernels.Laplacean": {}}, "Laplacean"),
        ({"streamkernel.kernels.Sum": {"left": {"streamkernel.kernels.Gaussian": {}}}}, "right"),
        ({"streamkernel.kernels.Scaled": {"kernel": {"streamkernel.kernels.Cauchy": {}}, "factor": 0}}, "factor"),
        ({"streamkernel.kernels.Gausian": {}}, "Gaussian"),
        (
            "gaussian",
            "must be None or a Kernel such as streamkernel.kernels.Gaussian(), "
            "got 'gaussian': write {streamkernel.kernels.Gaussian: {}}",
        ),
        ({"Polynomial": True}, "write {streamkernel.kernels.Polynomial: {}}"),
        ({"Polynomial": {"degree": 3}}, "write {streamkernel.kernels.Polynomial: {degree: ...}}"),
        ("streamkernel.kernels.Matern", "to make an object of it write {streamkernel.kernels.Matern: {}}"),
        (
            {"streamkernel.kernels.Sum": {"left": {"streamkernel.kernels.Gaussian": {}}, "right": "cauchy"}},
            "right: must be a Kernel such as streamkernel.kernels.Gaussian(), got 'cauchy'"
            ": write {streamkernel.kernels.Cauchy: {}}",
        ),
    ],
)
def test_mistakes_in_a_configuration(home: Home, capsys: pytest.CaptureFixture[str], kernel: Any, message: str) -> None:
    home.configure(model=[{"streamkernel.KernelClassifier": {"kernel": kernel}}])
    assert main(["check", str(home.config)]) == 2
    assert message in capsys.readouterr().err


def test_kernels_inside_rivers_models_are_restored_by_their_constructors() -> None:
    def bag() -> Any:
        kernel = Polynomial(2) + 0.5 * (SkewedChiSquared(2.0) * Gaussian(1.0))
        return ensemble.BaggingClassifier(KernelClassifier(kernel=kernel, batch_size=4, seed=1), n_models=2, seed=1)

    model = bag()
    for i in range(40):
        model.learn_one({"a": i % 5, "b": i % 3}, i % 5 > 2)
    restored = load_model(dump_model(model), bag())
    assert restored.predict_proba_one({"a": 1, "b": 2}) == model.predict_proba_one({"a": 1, "b": 2})


def test_what_a_kernel_works_out_is_not_in_its_pickle() -> None:
    kernel = ChiSquared() + 2.0 * SkewedChiSquared(3.0)
    assert list(kernel.__getstate__() or {}) == ["left", "right"]
    restored = pickle.loads(pickle.dumps(kernel))
    assert (restored.domain, restored.n_parts) == (kernel.domain, 4)
    assert ChiSquared().__getstate__() is None
    # Nor is it taken from one.
    with pytest.raises(TypeError, match="n_parts"):
        Sum.__new__(Sum).__setstate__({"left": Gaussian(), "right": Gaussian(), "n_parts": 1, "matrix": None})
    with pytest.raises(ValueError, match="factor must be a number above 0"):
        Scaled.__new__(Scaled).__setstate__({"kernel": Gaussian(), "factor": -1})
