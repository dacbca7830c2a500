"""Every loss: its value, its slope, its minimum, its constants, and those of River that cannot be used."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.optim import losses as river_losses

from streamkernel import KernelClassifier, KernelRegressor, losses
from streamkernel.losses import UNUSABLE, curvature, gradient_bound
from streamkernel.state import arguments

BINARY = [losses.Log(), losses.SquaredHinge(), river_losses.Hinge()]
REGRESSION = [
    river_losses.Squared(),
    river_losses.Absolute(),
    river_losses.Huber(epsilon=1.0),
    river_losses.Huber(),
    losses.EpsilonInsensitive(),
    losses.EpsilonInsensitive(eps=0.5),
    losses.EpsilonInsensitive(eps=0.0),
    losses.Quantile(),
    losses.Quantile(alpha=0.9),
    losses.Quantile(alpha=0.05),
]
SMOOTH = (losses.Log, losses.SquaredHinge, river_losses.Squared, river_losses.Huber)

scores = st.floats(-20, 20)


def _name(loss):
    return f"{type(loss).__module__}.{type(loss).__name__}{arguments(loss) or ''}"


def _value(loss, y, u):
    return float(loss(np.array([float(y)]), np.array([u]))[0])


def _slope(loss, y, u):
    return float(loss.gradient(np.array([float(y)]), np.array([u]))[0])


# Value and derivative by u, as the table of losses has them, in plain Python; s is y as -1 or 1, e is u - y.
TABLE = {
    "SVM": (river_losses.Hinge(), lambda s, u: (max(0, 1 - s * u), -s if s * u < 1 else 0)),
    "squared-hinge SVM": (
        losses.SquaredHinge(),
        lambda s, u: (max(0, 1 - s * u) ** 2 / 2, -s * max(0, 1 - s * u)),
    ),
    "logistic": (losses.Log(), lambda s, u: (math.log(1 + math.exp(-s * u)), -s / (1 + math.exp(s * u)))),
    "ridge": (river_losses.Squared(), lambda e: (e * e, 2 * e)),
    "Huber": (
        river_losses.Huber(epsilon=1.0),
        lambda e: (e * e / 2, e) if abs(e) <= 1 else (abs(e) - 1 / 2, math.copysign(1, e)),
    ),
    "SVR": (
        losses.EpsilonInsensitive(eps=0.25),
        lambda e: (abs(e) - 0.25, math.copysign(1, e)) if abs(e) > 0.25 else (0, 0),
    ),
    "absolute": (river_losses.Absolute(), lambda e: (abs(e), math.copysign(1, e))),
    "quantile": (losses.Quantile(alpha=0.8), lambda e: (-0.8 * e, -0.8) if e < 0 else (0.2 * e, 0.2)),
}


@pytest.mark.parametrize("name", TABLE)
def test_value_and_derivative_are_those_of_the_table(name):
    loss, formula = TABLE[name]
    for u in (-3.0, -0.6, -0.1, 0.3, 0.9, 2.5):
        if isinstance(loss, river_losses.RegressionLoss):
            cases = [(y, formula(u - y)) for y in (-1.5, 0.0, 0.4)]
        else:
            cases = [(y, formula(2 * y - 1, u)) for y in (0, 1)]
        for y, (value, slope) in cases:
            assert _value(loss, y, u) == pytest.approx(value, rel=1e-12)
            assert _slope(loss, y, u) == pytest.approx(slope, rel=1e-12)


@given(nu=st.floats(0.01, 1), tau=scores, u=scores)
def test_novelty_slopes(nu, tau, u):
    loss, h = losses.NoveltyHinge(nu), 1e-6
    if abs(u - tau) < 2 * h:
        return
    by_score = (loss(tau, u + h) - loss(tau, u - h)) / (2 * h)
    by_threshold = (loss(tau + h, u) - loss(tau - h, u)) / (2 * h)
    assert loss.gradient(tau, u) == pytest.approx(by_score, abs=1e-6 * (1 + abs(u) + abs(tau)))
    assert loss.threshold_gradient(tau, u) == pytest.approx(by_threshold, abs=1e-6 * (1 + abs(u) + abs(tau)))


@given(y=st.sampled_from([0, 1]), u=st.floats(-20, 12), clip=st.floats(0.5, 8))
def test_density_ratio_slope(y, u, clip):
    if abs(u - clip) < 1e-5:
        return
    loss, h = losses.KLDensityRatio(clip), 1e-6
    difference = (_value(loss, y, u + h) - _value(loss, y, u - h)) / (2 * h)
    assert _slope(loss, y, u) == pytest.approx(difference, rel=1e-4, abs=1e-6 * (1 + abs(u)))


@pytest.mark.parametrize("loss", [*BINARY, *REGRESSION], ids=_name)
@given(y=st.sampled_from([0.0, 1.0]), u=scores, v=scores)
def test_constants_hold(loss, y, u, v):
    slopes = _slope(loss, y, u), _slope(loss, y, v)
    bound = gradient_bound(loss)
    if bound is not None:
        assert max(map(abs, slopes)) <= bound
    if isinstance(loss, SMOOTH):
        assert abs(slopes[0] - slopes[1]) <= curvature(loss) * abs(u - v) * (1 + 1e-9) + 1e-12


@given(st.integers(2, 12), st.integers(0, 10_000))
def test_constants_of_the_softmax(K, seed):
    rng = np.random.default_rng(seed)
    u, v = 4 * rng.normal(size=(2, 1, K))
    y = rng.integers(0, K, 1)
    slopes = [losses.Softmax().gradient(y, at)[0] for at in (u, v)]
    assert max(np.linalg.norm(slope) for slope in slopes) <= gradient_bound(losses.Softmax())
    assert np.linalg.norm(slopes[0] - slopes[1]) <= curvature(losses.Softmax()) * np.linalg.norm(u - v) + 1e-12


@pytest.mark.parametrize(
    ("loss", "instead"),
    [
        (river_losses.Log(), "streamkernel.losses.Log()"),
        (river_losses.BinaryFocalLoss(), "streamkernel.losses.Log()"),
        (river_losses.CrossEntropy(), "streamkernel.losses.Softmax()"),
        (river_losses.Quantile(), "streamkernel.losses.Quantile(alpha)"),
        (river_losses.EpsilonInsensitiveHinge(), "streamkernel.losses.EpsilonInsensitive(eps)"),
        (river_losses.Cauchy(), "river.optim.losses.Huber(epsilon)"),
        (river_losses.Poisson(), "river.optim.losses.Squared()"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_unusable_loss_of_river_names_its_replacement(loss, instead):
    model = KernelRegressor if isinstance(loss, river_losses.RegressionLoss) else KernelClassifier
    with pytest.raises(ValueError) as error:  # noqa: PT011
        model(loss=loss)
    message = str(error.value)
    assert message.startswith(f"loss: river.optim.losses.{type(loss).__name__} cannot be used, ")
    assert message.endswith(f": use {instead}")


def test_every_loss_of_river_is_either_tested_or_refused():
    kinds = (river_losses.BinaryLoss, river_losses.MultiClassLoss, river_losses.RegressionLoss)
    offered = {
        loss
        for loss in vars(river_losses).values()
        if isinstance(loss, type) and issubclass(loss, kinds) and loss not in kinds
    }
    tested = {type(loss) for loss in [*BINARY, *REGRESSION] if type(loss).__module__ != losses.__name__}
    assert offered == tested | set(UNUSABLE)


@pytest.mark.parametrize(
    ("model", "loss", "wanted"),
    [
        (KernelClassifier, river_losses.Squared(), "a BinaryLoss or MultiClassLoss"),
        (KernelRegressor, losses.Log(), "a RegressionLoss"),
        (KernelRegressor, "squared", "a RegressionLoss"),
        (KernelClassifier, losses.Log, "a BinaryLoss or MultiClassLoss"),
    ],
)
def test_a_loss_of_the_wrong_kind_is_refused(model, loss, wanted):
    with pytest.raises(ValueError, match=rf"loss must be None or {wanted} such as river\.optim\.losses\.\w+\(\), got "):
        model(loss=loss)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, math.nan, "a"])
def test_quantile_wants_a_level_inside_0_and_1(alpha):
    with pytest.raises(ValueError, match=r"alpha must be inside \(0, 1\), got"):
        losses.Quantile(alpha)


@pytest.mark.parametrize("eps", [-0.1, math.nan, math.inf, "a"])
def test_the_tube_has_a_width(eps):
    with pytest.raises(ValueError, match="eps must be a number from 0 up, got"):
        losses.EpsilonInsensitive(eps)
