"""One unit for losses, whatever the model; and those of which no mean can be taken are counted and shown."""

from __future__ import annotations

import io
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from river import compose, datasets
from river.optim.losses import Huber, RegressionLoss

from streamkernel import (
    AdaptiveKernelRegressor,
    KernelRegressor,
)
from streamkernel.connectors.ports import Position, Record
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.cli import main
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.tables import summary_table
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.direct import DirectStage
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.river_learner import RiverLearner, learner_for
from tests.daemon.conftest import Home

NUMBERS = [(x, y) for x, y in datasets.TrumpApproval().take(400)]


def identity(model: Any) -> Any:
    """A pipeline whose first step changes nothing."""
    return compose.Discard("no such input") | model


def losses_of(model: Any, stream: Any) -> np.ndarray:
    xs, ys = zip(*stream, strict=True)
    return learner_for(model).advance(RecordBatch(inputs=xs, targets=ys)).result.losses


@pytest.mark.parametrize(
    ("model", "tolerance"),
    [
        (AdaptiveKernelRegressor(n_features=16, seed=1), 1e-9),
        (KernelRegressor(seed=1), 0.05),
        (KernelRegressor(loss=Huber(), seed=1), 0.05),
    ],
)
def test_a_pipeline_has_the_losses_of_its_last_step(model: Any, tolerance: float) -> None:
    bare, piped = losses_of(model.clone(), NUMBERS), losses_of(identity(model.clone()), NUMBERS)
    # A growing machine's prediction is in the unit before the target, which settles.
    assert piped[100:].sum() == pytest.approx(bare[100:].sum(), rel=tolerance)


def write_numbers(path: Path, n: int = 400) -> None:
    lines = [f"{x['ordinal_date']},{y}" for x, y in datasets.TrumpApproval().take(n)]
    path.write_text("\n".join(["a,y", *lines]) + "\n")


def test_the_unit_of_a_model_of_rivers_outlives_a_restart(home: Home) -> None:
    write_numbers(home.folder / "stream.csv")
    model = ["river.preprocessing.StandardScaler", "river.linear_model.LinearRegression"]
    plan = {"model": model, "source": {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "float"}}
    home.configure(**plan)
    run(prepare(home.config), fresh=True, max_records=150)
    n, mean, m2 = home.header()["models"]["learners"][""]["target_moments"]
    ys = [y for _, y in NUMBERS[:150]]
    assert (n, mean, m2 / n) == pytest.approx((150, np.mean(ys), np.var(ys)))
    rest = run(prepare(home.config))
    whole = RiverLearner(prepare(home.config).model)
    expected = whole.advance(
        RecordBatch(inputs=[{"a": x["ordinal_date"]} for x, _ in NUMBERS], targets=[y for _, y in NUMBERS])
    ).result.losses
    assert rest.loss == pytest.approx(expected[150:].mean())
    home.configure(**{**plan, "model": [{"streamkernel.KernelRegressor": {"seed": 1}}]})
    run(prepare(home.config), fresh=True)
    assert "target_moments" not in home.header()["models"]["learners"][""]  # its state has its own


def test_moments_that_cannot_be_are_refused(home: Home) -> None:
    from streamkernel.daemon.base.errors import CheckpointError
    from streamkernel.daemon.run_state.header import check_header

    write_numbers(home.folder / "stream.csv", 20)
    home.configure(
        source={"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "float"},
        model=["river.linear_model.LinearRegression"],
    )
    run(prepare(home.config), fresh=True)
    header = home.header()
    moments: Any
    for moments in ([1, 2.0], "text", [-1, 0.0, 0.0], [1, 0.0, -1.0], [1.5, 0.0, 0.0], [1, None, 0.0]):
        header["models"]["learners"][""]["target_moments"] = moments
        with pytest.raises(CheckpointError, match="target_moments"):
            check_header(header)


class Patchy(RegressionLoss):
    """NaN where a root would be of what is below 0."""

    curvature = 1.0
    gradient_bound = 1.0

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return np.where(y_pred <= y_true, np.abs(y_pred - y_true), np.nan)

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        return np.sign(y_pred - y_true)


def processor_of(model: Any, learn: bool = True) -> Processor:
    return Processor(
        learner_for(model, learn),
        Quality("regression", ["mae"], window=50),
        ProgressiveLoss(50),
        DeadLetterRate(0.5, 20),
        RecordCounts(),
        DirectStage(),
    )


def records(n: int) -> list[Record]:
    def record(i: int) -> Record:
        y = None if i % 10 == 0 else math.sin(i)
        return Record({"a": float(i % 7)}, y, Position("here", 0, i), Position("here", 0, i + 1), b"")

    return [record(i) for i in range(n)]


@pytest.mark.filterwarnings("ignore:the loss Patchy gave a value that is not finite:RuntimeWarning")
@pytest.mark.parametrize("piped", [False, True])
def test_nan_losses_are_counted_and_shown(piped: bool, caplog: pytest.LogCaptureFixture) -> None:
    model = KernelRegressor(loss=Patchy(), batch_size=8, seed=1)
    processor = processor_of(identity(model) if piped else model)
    exporter = Exporter(processor.learner.model, ["mae"], 50)
    watch = Watch(processor, exporter)
    with caplog.at_level(logging.WARNING):
        for start in range(0, 200, 50):
            [done] = processor.process(records(200)[start : start + 50])
            watch.chunk(done)
    found = processor.loss.n_not_finite
    assert 10 < found < 180
    assert found + processor.loss.count == 180  # of all that have a target
    assert "losses were not finite" in caplog.text
    value = exporter.registry.get_sample_value("streamkernel_not_finite_total", {"value": "loss"})
    assert value == found
    view = watch.refresh()
    assert math.isfinite(view.loss)
    assert view.to_json()["losses_not_finite"] == found
    console = Console(file=io.StringIO(), width=100)
    console.print(summary_table({"a": view}))
    assert "losses not finite" in console.file.getvalue()  # type: ignore[attr-defined]


KERNEL = """
import numpy as np
from streamkernel.kernels import Gaussian
from streamkernel.daemon.stream.record_batch import RecordBatch

class Broken(Gaussian):
    def frequencies(self, words, keys, bandwidth, out):
        super().frequencies(words, keys, bandwidth, out)
        out[:] = np.nan
"""


@pytest.mark.parametrize("first", [[], ["river.preprocessing.StandardScaler"]], ids=["bare", "pipeline"])
def test_a_broken_kernel_ends_the_run_and_is_named(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], first: list[str]
) -> None:
    monkeypatch.syspath_prepend(home.folder)
    (home.folder / "broken_kernel.py").write_text(KERNEL)
    write_numbers(home.folder / "stream.csv", 50)
    home.configure(
        source={"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "float"},
        imports=["broken_kernel"],
        model=[*first, {"streamkernel.AdaptiveKernelRegressor": {"kernel": {"broken_kernel.Broken": {}}, "seed": 1}}],
    )
    assert main(["evaluate", str(home.config)]) == 1
    said = capsys.readouterr().err
    assert "the kernel Broken gave nan in its method `frequencies`: it must give finite numbers only" in said
    assert "unexpected" not in said
