"""From names to objects: pipelines and kernels are built as they are written, learn, and are restored."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from river import compose, ensemble, linear_model, multiclass, optim, preprocessing

from streamkernel import AdaptiveKernelClassifier, KernelClassifier, kernels
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.model import last_step, task_of
from streamkernel.daemon.checkpoints.payload import dump_model, load_model
from streamkernel.daemon.cli import main
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.model import build_model
from streamkernel.daemon.wiring.names import NameRefused, resolve
from streamkernel.daemon.wiring.plan import prepare
from streamkernel.kernels import ChiSquared, Gaussian, Laplacian, Mahalanobis, Polynomial, Scaled, SkewedChiSquared, Sum
from tests.daemon.conftest import Home

LOGISTIC = "river.linear_model.LogisticRegression"


def refused(steps: list[Any], **keywords: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build_model(steps, **keywords)
    return caught.value.lines


def test_several_steps_are_a_pipeline_of_rivers() -> None:
    model = build_model(
        [
            {"river.compose.Discard": {"args": ["row", "id"]}},
            "river.preprocessing.StandardScaler",
            {LOGISTIC: {"optimizer": {"river.optim.SGD": {"lr": 0.5}}, "loss": {"river.optim.losses.Hinge": None}}},
        ]
    )
    expected = compose.Pipeline(
        compose.Discard("row", "id"),
        preprocessing.StandardScaler(),
        linear_model.LogisticRegression(optimizer=optim.SGD(lr=0.5), loss=optim.losses.Hinge()),
    )
    assert repr(model) == repr(expected)
    assert isinstance(last_step(model), linear_model.LogisticRegression)
    assert task_of(model) == "classification"


def test_objects_may_stand_in_lists_and_in_positional_arguments() -> None:
    model = build_model(
        [
            {
                "river.compose.TransformerUnion": {
                    "args": [{"river.preprocessing.StandardScaler": {}}, {"river.compose.Select": {"args": ["a"]}}]
                }
            },
            {"river.multiclass.OneVsRestClassifier": {"classifier": {LOGISTIC: {"l2": 0.25}}}},
        ]
    )
    last = last_step(model)
    assert isinstance(last, multiclass.OneVsRestClassifier)
    assert last.classifier.l2 == 0.25
    assert task_of(build_model(["river.linear_model.LinearRegression"])) == "regression"


def test_what_cannot_be_built_is_one_line(subtests: pytest.Subtests) -> None:
    for steps, line in [
        ([5], "model[0]: must be dotted.Name or dotted.Name: {keyword: value}, got 5"),
        ([{LOGISTIC: {}, "l2": 1}], "(are the keywords indented deeper than the name?)"),
        ([{LOGISTIC: [1]}], f"model[0]: the arguments of {LOGISTIC} must be a mapping, got [1]"),
        (["LogisticRegression"], "model[0]: must name a class with its module, like river.compose.Select, got"),
        (["river.linear_model.LogisticRegresion"], "has no LogisticRegresion, did you mean 'LogisticRegression'?"),
        (["river.linear.LogisticRegression"], "model[0]: river has no linear"),
        ([{LOGISTIC: {"l3": 1}}], f"model[0].l3: unknown argument of {LOGISTIC}"),
        ([{LOGISTIC: {"args": 1}}], "model[0].args: must be a list, got 1"),
        ([{LOGISTIC: {"args": list(range(20))}}], f"model[0]: {LOGISTIC}: too many positional arguments"),
        (["river.multiclass.OneVsRestClassifier"], "missing a required argument: 'classifier'"),
        (
            [{"river.multiclass.OneVsRestClassifier": {"classifier": LOGISTIC}}],
            f"model[0].classifier: is the name of a class; to make an object of it write {{{LOGISTIC}: {{}}}}",
        ),
        ([{LOGISTIC: {"optimizer": {"river.optim.SGD": {"lrr": 1}}}}], "model[0].optimizer.lrr: unknown argument of"),
        (["river.anomaly.HalfSpaceTrees"], "must be a classifier or a regressor, HalfSpaceTrees is neither"),
        (["river.compose.Pipeline"], "model[0]: a Pipeline without steps"),
        (["river.compose.Pipeline", "river.linear_model.LogisticRegression"], "model[0]: a Pipeline without steps"),
        (["river.preprocessing.StandardScaler"], "must be a classifier or a regressor, StandardScaler is neither"),
        ([LOGISTIC, LOGISTIC], "model[0]: every step but the last must be a transformer, LogisticRegression is none"),
        (["river.base.Classifier"], "model[0]: river.base.Classifier is abstract, name one of its subclasses"),
        ([{"streamkernel.KernelClassifier": {"max_features": -5}}], "model[0].max_features: must be "),
        ([{"streamkernel.KernelClassifier": {"block_size": "x"}}], "model[0]"),
    ]:
        with subtests.test(steps=steps, line=line):
            (found,) = refused(steps)
            assert line in found
            assert "\n" not in found


def test_every_mistake_is_told() -> None:
    steps = [{LOGISTIC: {"l3": 1, "loss": {"os.system": None}}}, "a.b", 5, "river.preprocessing.StandardScaler"]
    starts = ["model[0].l3: ", "model[0].loss: ", "model[1]: ", "model[2]: ", "model[3]: "]
    assert [line[: len(start)] for line, start in zip(refused(steps), starts, strict=True)] == starts


def test_names_that_lead_elsewhere_are_refused(subtests: pytest.Subtests) -> None:
    for name in [
        *("os.system", "builtins.eval", "subprocess.Popen", "numpy.memmap", "riverx.linear_model.LogisticRegression"),
        *("river.checks.np.memmap", "river.checks.clf.Classifier", "river.datasets.Phishing", "river.stream.Cache"),
        *("river.compose.func.inspect.os", "river.linear_model.base.np.ndarray", "river.optim.losses.np.memmap"),
        *("river.linear_model", "river", "river.base.typing.Any", "river.utils.Rolling", "river.linear_model.__name__"),
        *(
            "river.base.base.copy.deepcopy",
            "river.linear_model.LogisticRegression.learn_one",
            "streamkernel.daemon.cli.app",
        ),
        *("river..linear_model", "river.linear_model.", "river.linear_model.Logistic Regression"),
    ]:
        with subtests.test(name=name), pytest.raises(NameRefused):
            resolve(name)


class TestImports:
    """Packages the user lists."""

    @pytest.fixture(autouse=True)
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "listed_models.py").write_text(
            "from river import dummy\nfrom decimal import Decimal\nfrom river.dummy import PriorClassifier\n"
            "class Mine(dummy.PriorClassifier):\n    pass\nclass Plain:\n    pass\n"
        )
        (tmp_path / "broken_models.py").write_text("import nowhere_to_be_found\n")
        monkeypatch.syspath_prepend(str(tmp_path))

    def test_their_classes_are_built_when_listed(self) -> None:
        assert type(build_model(["listed_models.Mine"], ["listed_models"])).__name__ == "Mine"

    @pytest.mark.parametrize("name", ["listed_models.Plain", "listed_models.Decimal", "listed_models.Missing"])
    def test_but_only_parts_of_river_models(self, name: str) -> None:
        with pytest.raises(NameRefused):
            resolve(name, ["listed_models"])

    def test_not_when_they_are_not_listed(self) -> None:
        assert refused(["listed_models.Mine"]) == [
            "model[0]: listed_models.Mine is outside river and streamkernel; list its package under imports"
        ]

    def test_a_package_that_cannot_be_imported_is_one_line(self) -> None:
        assert refused(["missing_models.A"], imports=["missing_models"]) == [
            "model[0]: the package missing_models is not installed"
        ]
        assert "nowhere_to_be_found" in refused(["broken_models.A"], imports=["broken_models"])[0]


def test_a_wrong_value_is_told_beside_an_unknown_argument() -> None:
    keywords = {"max_feature": 5, "max_features": -5, "seed": 1, "block_size": 0, "kernel": {"os.system": {}}}
    found = refused([{"streamkernel.KernelClassifier": keywords}])
    assert found[:2] == [
        "model[0].max_feature: unknown argument of streamkernel.KernelClassifier, did you mean 'max_features'?",
        "model[0].kernel: os.system is outside river and streamkernel; list its package under imports",
    ]
    assert [line.partition(": ")[0] for line in found[2:]] == ["model[0].block_size", "model[0].max_features"]


def test_all_wrong_values_of_an_estimator_at_once() -> None:
    keywords = {"max_features": -5, "batch_size": 0, "seed": 1, "regularization": -1.0}
    found = refused([{"streamkernel.KernelClassifier": keywords}, {"streamkernel.KernelRegressor": {"batch_size": -1}}])
    assert [line.partition(":")[0] for line in found] == [
        "model[0].batch_size",
        "model[0].max_features",
        "model[0].regularization",
        "model[1].batch_size",
    ]


def test_nothing_is_told_that_only_follows_from_a_mistake() -> None:
    """The argument is required: without its value the class says so, which is no mistake of the file."""
    (line,) = refused([{"river.preprocessing.TargetStandardScaler": {"regressor": {"os.system": {}}}}])
    assert line == "model[0].regressor: os.system is outside river and streamkernel; list its package under imports"


KERNEL = {
    "streamkernel.kernels.Sum": {
        "left": {"streamkernel.kernels.ChiSquared": {}},
        "right": {
            "streamkernel.kernels.Scaled": {
                "kernel": {
                    "streamkernel.kernels.Product": {
                        "left": {"streamkernel.kernels.Laplacian": {"bandwidth": 2}},
                        "right": {"streamkernel.kernels.SkewedIntersection": {"c": 0.5}},
                    }
                },
                "factor": 0.5,
            }
        },
    }
}


def _configured(home: Home, model: Any, lines: int) -> Any:
    with (home.folder / "stream.jsonl").open("w") as stream:
        for i in range(lines):
            stream.write(json.dumps({"a": (i % 7) / 2, "b": -1 if i in (3, 40) else i % 5, "y": i % 7 > 3}) + "\n")
    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y", "target_type": "bool"}
    return prepare(home.configure(source=source, model=[model]))


def _growing(kernel: Any) -> Any:
    return {"streamkernel.KernelClassifier": {"kernel": kernel, "batch_size": 8, "seed": 1}}


def test_a_kernel_of_a_configuration_learns_is_restored_and_refuses_records(home: Home) -> None:
    account = dict(run(_configured(home, _growing(KERNEL), 50)).account)
    assert (account["learnt"], account["dead"]) == (48, 2)
    letters = home.lines("out/dead.jsonl")
    assert [letter["reason"] for letter in letters] == ["refused", "refused"]
    assert (
        "input 'b' is -1, which the model's kernel does not take: give a number of at least 0" in letters[0]["detail"]
    )
    account = dict(run(_configured(home, _growing(KERNEL), 100)).account)
    assert (account["learnt"], account["dead"]) == (98, 2)


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
    ids=["a learnt metric", "a sum in an adaptive estimator"],
)
def test_a_kernel_of_parts_is_restored_and_told_from_another(
    home: Home, step: Callable[[float], Any], now: float, other: float, whole: Any, where: str
) -> None:
    run(_configured(home, step(now), 50))
    plan = _configured(home, step(now), 100)
    assert dict(run(plan).account)["learnt"] == 100
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
        ("gaussian", "must be None or a Kernel, got 'gaussian': write {streamkernel.kernels.Gaussian: {}}"),
        (
            "0.1 * Gaussian()",
            "write {streamkernel.kernels.Scaled: {kernel: {streamkernel.kernels.Gaussian: {}}, factor: 0.1}}",
        ),
        (
            "Gaussian(2.0) * Cauchy()",
            "write {streamkernel.kernels.Product: {left: {streamkernel.kernels.Gaussian: {bandwidth: 2.0}}, right: "
            "{streamkernel.kernels.Cauchy: {}}}}",
        ),
        ("Gaussian(bandwidth=2.0)", "write {streamkernel.kernels.Gaussian: {bandwidth: 2.0}}"),
        ({"Polynomial": {"degree": 3}}, "write {streamkernel.kernels.Polynomial: {degree: ...}}"),
        (
            "Gaussian() + 0.1 * DotProduct()",
            ": write {streamkernel.kernels.Sum: {left: {streamkernel.kernels.Gaussian: {}}, right: "
            "{streamkernel.kernels.Scaled: {kernel: {streamkernel.kernels.DotProduct: {}}, factor: 0.1}}}}",
        ),
        ("streamkernel.kernels.Matern", "to make an object of it write {streamkernel.kernels.Matern: {}}"),
        (
            {"streamkernel.kernels.Sum": {"left": {"streamkernel.kernels.Gaussian": {}}, "right": "cauchy"}},
            "right: must be a Kernel, got 'cauchy': write {streamkernel.kernels.Cauchy: {}}",
        ),
    ],
)
def test_mistakes_in_a_configuration(home: Home, capsys: pytest.CaptureFixture[str], kernel: Any, message: str) -> None:
    home.configure(model=[{"streamkernel.KernelClassifier": {"kernel": kernel}}])
    assert main(["check", str(home.config)]) == 2
    assert message in capsys.readouterr().err


def test_losses_and_growth_policies_by_their_bare_names(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.configure(model=[{"streamkernel.KernelRegressor": {"loss": "quantile", "growth": {"UDSG": {"reuse": 2}}}}])
    assert main(["check", str(home.config)]) == 2
    said = capsys.readouterr().err
    assert "loss: must be None or a RegressionLoss, got 'quantile': write {streamkernel.losses.Quantile: {}}" in said
    assert "write {streamkernel.growth.UDSG: {reuse: ...}}" in said


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


def test_every_kernel_has_its_place_in_the_documents() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "kernels.md").read_text()
    for name in kernels.__all__:
        assert f"::: streamkernel.kernels.{name}\n" in page
