"""From names to objects: pipelines are built as they are written, and only of what they may be made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from river import compose, linear_model, optim, preprocessing

from streamkernel.daemon.assembly.model import build_model
from streamkernel.daemon.assembly.names import NameRefused, resolve
from streamkernel.daemon.base.model import last_step, task_of
from streamkernel.daemon.config.problems import ConfigError

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


def test_what_cannot_be_built_is_one_line(subtests: pytest.Subtests) -> None:
    for steps, line in [
        ([5], "model[0]: must be dotted.Name or dotted.Name: {keyword: value}, got 5"),
        ([{LOGISTIC: {}, "l2": 1}], "(are the keywords indented deeper than the name?)"),
        ([{LOGISTIC: [1]}], f"model[0]: the arguments of {LOGISTIC} must be a mapping, got [1]"),
        (["LogisticRegression"], "model[0]: must name a class with its module, like river.compose.Select, got"),
        (
            ["AdaptiveKernelClassifier"],
            "AdaptiveKernelClassifier', did you mean 'streamkernel.AdaptiveKernelClassifier'?",
        ),
        (
            ["linear_model.LogisticRegression"],
            "model[0]: linear_model.LogisticRegression is outside river and streamkernel, did you mean "
            "'river.linear_model.LogisticRegression'?",
        ),
        ([{"KernelClassifier": {}}], "did you mean 'streamkernel.KernelClassifier'?"),
        ([{LOGISTIC: {"optimizer": {"optim.SGD": {}}}}], "model[0].optimizer: optim.SGD is outside river and"),
        ([{LOGISTIC: {"optimizer": "optim.SGD"}}], "to make an object of it write {river.optim.SGD: {}}"),
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
        (["river.anomaly.HalfSpaceTrees"], "streamkernel.KernelDensityRatio, and HalfSpaceTrees is not one of them"),
        (["river.compose.Pipeline"], "model[0]: a Pipeline without steps"),
        (["river.compose.Pipeline", "river.linear_model.LogisticRegression"], "model[0]: a Pipeline without steps"),
        (
            ["river.preprocessing.StandardScaler"],
            "KernelDensityRatio, and StandardScaler is not one of them",
        ),
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


def test_all_wrong_values_of_an_estimator_at_once() -> None:
    keywords = {"max_features": -5, "batch_size": 0, "seed": 1, "regularization": -1.0}
    found = refused([{"streamkernel.KernelClassifier": keywords}, {"streamkernel.KernelRegressor": {"batch_size": -1}}])
    assert [line.partition(":")[0] for line in found] == [
        "model[0].batch_size",
        "model[0].regularization",
        "model[0].max_features",
        "model[1].batch_size",
    ]
