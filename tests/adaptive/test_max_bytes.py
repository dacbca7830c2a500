"""A bound on bytes: the parts are chosen to fit, and chosen again as inputs and classes come."""

import pickle

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.state import to_bytes

CASES = pytest.mark.parametrize(
    ("kind", "arguments"),
    [(AdaptiveKernelClassifier, {}), (AdaptiveKernelRegressor, {}), (AdaptiveKernelRegressor, {"lags": 2})],
    ids=["classes", "numbers", "lags"],
)


def _records(n, *, late=False, seed=1):
    """Records of six inputs and two classes; of eleven inputs and nine classes where some come late."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(n, 11)), rng.random(n)
    for i, row in enumerate(X.tolist()):
        d = 6 + (late and min(max(i - 150, 0) // 30, 5))
        label = int(row[0] > 0) + (2 * int(8 * noise[i] * min(i, 400) / 400) if late else 0)
        yield {f"x{j}": value for j, value in enumerate(row[:d])}, label, row[0] ** 2 + row[1]


def _fed(model, records):
    xs, labels, numbers = zip(*records, strict=True)
    model.advance(list(xs), list(labels if isinstance(model, AdaptiveKernelClassifier) else numbers))
    return model


@pytest.mark.parametrize(
    ("kind", "arguments", "most"),
    [
        (AdaptiveKernelClassifier, {}, 2**15),
        (AdaptiveKernelClassifier, {}, 2**19),
        (AdaptiveKernelRegressor, {}, 2**17),
        (AdaptiveKernelRegressor, {}, 2**21),
        (AdaptiveKernelRegressor, {"lags": 2}, 2**15),
        (AdaptiveKernelRegressor, {"lags": 2}, 2**19),
    ],
)
def test_neither_the_model_nor_its_checkpoint_takes_more(kind, arguments, most):
    model = kind(seed=1, max_bytes=most, **arguments)
    records = list(_records(1_300, late=True))
    for start in range(0, len(records), 325):
        _fed(model, records[start : start + 325])
        assert model.memory_bytes <= most
        assert len(pickle.dumps(model)) <= most
    assert len(model.input_names) == 11


@pytest.mark.parametrize(
    ("kind", "arguments", "most"),
    [
        (AdaptiveKernelClassifier, {}, 100_000),
        (AdaptiveKernelRegressor, {}, 2**16),
        (AdaptiveKernelRegressor, {"lags": 2}, 2**16),
        (AdaptiveKernelRegressor, {"lags": 2}, 100_000),
    ],
)
def test_inputs_that_come_one_by_one_fit(kind, arguments, most):
    """Also columns of their own, of inputs that come when the model has begun with fewer."""
    model = kind(seed=1, max_bytes=most, **arguments)
    rows = np.random.default_rng(1).random((120, 60)).tolist()
    for d, row in enumerate(rows, start=3):
        model.learn_one({f"x{j}": value for j, value in enumerate(row[: d // 2])}, d % 2)
        assert model.memory_bytes <= most
        assert len(pickle.dumps(model)) <= most


@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
@pytest.mark.parametrize("most", [0, 16_383, "1 MB", 1e6, True])
def test_a_bound_that_is_none_is_refused(kind, most):
    with pytest.raises(ValueError, match=r"^max_bytes .* 16384, got"):
        kind(max_bytes=most)


def test_the_least_bound_is_kept_and_two_cores_need_two():
    for kind, least, arguments in (
        (AdaptiveKernelClassifier, 2**14, {"lags": 1}),
        (AdaptiveKernelRegressor, 2**14, {}),
        (AdaptiveKernelRegressor, 2**15, {"lags": 1}),
        (AdaptiveKernelRegressor, 2**15, {"lags": 20}),
    ):
        model = _fed(kind(seed=1, max_bytes=least, **arguments), _records(300))
        assert max(model.memory_bytes, len(pickle.dumps(model))) <= least
    with pytest.raises(ValueError, match=r"^max_bytes .* 32768, got 32767"):
        AdaptiveKernelRegressor(max_bytes=2**15 - 1, lags=1)


@pytest.mark.parametrize(("kind", "lags"), [(AdaptiveKernelClassifier, 1), (AdaptiveKernelRegressor, 3)])
def test_without_a_bound_defaults_at_20_inputs_take_less_than_8_mb(kind, lags):
    """The memory is full: it holds 100,000 numbers."""
    X = np.random.default_rng(0).normal(size=(5_100, 20))
    model = kind(lags=lags, seed=1)
    targets = (X[:, 0] > 0).tolist() if kind is AdaptiveKernelClassifier else X[:, 0].tolist()
    model.advance([{f"x{j}": value for j, value in enumerate(row)} for row in X.tolist()], targets)
    state = model.__getstate__()
    assert len(state["recent_rows"]) == 5_000
    assert len(to_bytes(state)) < 8e6
