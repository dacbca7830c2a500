"""The usual step, compiled, has the bits of the general one, which is its slow twin."""

import random

import numpy as np
import pytest
from river.optim.schedulers import Constant

from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.compute import growing_step
from streamkernel.compute.growing_step import NUMBER
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.growth.usual_step import UsualStep
from streamkernel.kernels import Gaussian, Laplacian
from streamkernel.losses import EpsilonInsensitive

CASES = {
    "dsg": {"growth": DSG()},
    "udsg": {"growth": UDSG(reuse=2)},
    "full": {"growth": UDSG(), "max_features": 96},
    "checked": {"growth": CDSG(), "max_features": 128},
    "preconditioned": {"growth": DSG(), "precondition": True},
    "preconditioned and checked": {"growth": CDSG(), "precondition": True, "max_features": 128},
    "two blocks": {"growth": CDSG(), "blocks_per_step": 2, "precondition": True, "max_features": 256},
    "averaged": {"growth": CDSG(), "average": True},
    "strongly regularized": {"growth": CDSG(), "regularization": 30.0},
    "double": {"growth": CDSG(), "dtype": "float64", "kernel": Laplacian()},
    "scheduled": {"growth": CDSG(), "step": Constant(0.3)},
    "a small cache": {"growth": DSG(), "cache_bytes": 8_000},
    "a given bandwidth": {"growth": CDSG(), "kernel": Gaussian(bandwidth=2.0), "batch_size": 7},
}


def stream(n, n_classes, seed=1):
    """Records with gaps, late inputs and classes, some unlabeled, and weights."""
    rng = random.Random(seed)
    for t in range(n):
        x = {name: rng.gauss(0, 1) for name in ("abc" if t < 150 else "abcd") if rng.random() < 0.95}
        score = sum(x.values()) + rng.gauss(0, 0.3)
        label = None if rng.random() < 0.1 else int(abs(10 * score)) % min(n_classes, 2 + t // 20)
        yield x, label, rng.choice([1.0, 1.0, 1.0, 0.0, 2.5])


def learned(model, records, by=37):
    """What a model predicted, and its state."""
    found = []
    for start in range(0, len(records), by):
        xs, ys, ws = map(list, zip(*records[start : start + by], strict=True))
        result = model.advance(xs, ys, ws)
        found.append((result.predictions, result.losses.tobytes()))
    return repr(found), model.state_digest()


def both_ways(make, records, monkeypatch):
    """What `learned` gives with the usual step, without it, and how many usual steps there were."""
    n_steps = 0
    take = UsualStep.take

    def counted(self, *given):
        nonlocal n_steps
        history = self._updates.history
        before = history.t
        take(self, *given)
        n_steps += history.t - before

    monkeypatch.setattr(UsualStep, "take", counted)
    quick = learned(make(), records)
    monkeypatch.setattr(UsualStep, "frequencies", lambda *_: None)
    return quick, learned(make(), records), n_steps


@pytest.mark.parametrize("n_classes", [2, 14])
@pytest.mark.parametrize("case", CASES)
def test_a_classifier_takes_the_same_steps(case, n_classes, monkeypatch):
    arguments = {"precondition": False, "seed": 3, **CASES[case]}
    records = list(stream(700, n_classes))
    quick, slow, n_steps = both_ways(lambda: KernelClassifier(**arguments), records, monkeypatch)
    assert quick == slow
    assert n_steps


@pytest.mark.parametrize("precondition", [False, True])
def test_a_regressor_takes_the_same_steps(precondition, monkeypatch):
    records = [(x, None if y is None else y + x.get("a", 0.0), w) for x, y, w in stream(500, 5)]
    arguments = {"loss": EpsilonInsensitive(), "precondition": precondition, "seed": 3}
    quick, slow, n_steps = both_ways(lambda: KernelRegressor(**arguments), records, monkeypatch)
    assert quick == slow
    assert n_steps


def test_a_loss_without_a_bound_takes_the_general_step(monkeypatch):
    records = [(x, y, w) for x, y, w in stream(200, 5)]
    _, _, n_steps = both_ways(lambda: KernelRegressor(precondition=False, seed=3), records, monkeypatch)
    assert n_steps == 0


def test_an_expansion_scores_the_same_with_new_inputs_in_a_record(monkeypatch):
    records = list(stream(300, 2))
    model = KernelClassifier(precondition=False, seed=1)
    learned(model, records)
    unknown = [({"a": 0.5, "new": 1.0}, None, 1.0), ({"a": 0.5}, None, 1.0)]
    quick = learned(model, unknown)
    monkeypatch.setattr(UsualStep, "frequencies", lambda *_: None)
    assert quick == learned(model, unknown)
    assert np.isfinite(model.predict_proba_one({"a": 0.5})[0])


def test_a_step_that_is_interrupted_in_its_second_block_is_undone(monkeypatch):
    model = KernelClassifier(growth=CDSG(), precondition=True, blocks_per_step=2, max_features=128, seed=3)
    learned(model, list(stream(400, 2)))
    parts = model._machine.expansion, model._machine.history
    before = [repr(part.state()) for part in parts]
    take_steps, n_updates = growing_step.take_steps, []

    def interrupted(*given):
        stage, at = take_steps(*given), given[-2]
        n_updates.append(at[NUMBER])
        if at[NUMBER] == 1:
            raise KeyboardInterrupt
        return stage

    monkeypatch.setattr(growing_step, "take_steps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learned(model, list(stream(200, 2)))
    assert n_updates[-1] == 1
    assert [repr(part.state()) for part in parts] == before
