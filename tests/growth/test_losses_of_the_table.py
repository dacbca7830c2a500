"""Every machine of the table of losses: what it learns of records that are all alike is the minimizer of its loss.

There f is one number, which the features, cosines of 0, learn exactly.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from river import optim
from river.optim import losses as river_losses
from scipy import optimize

from streamkernel import KernelClassifier, KernelRegressor, losses
from streamkernel.growth import DSG
from streamkernel.kernels import Gaussian
from streamkernel.losses import curvature, gradient_bound, is_smooth

PAGE = Path(__file__).parents[2] / "docs" / "estimators" / "choosing.md"
GIVEN = {"kernel": Gaussian(1.0), "growth": DSG(), "batch_size": 40, "block_size": 8, "max_features": 32, "seed": 1}
REGRESSION = {
    "ridge": river_losses.Squared(),
    "robust": river_losses.Huber(epsilon=0.5),
    "support vector": losses.EpsilonInsensitive(eps=0.3),
    "absolute": river_losses.Absolute(),
    "quantile .9": losses.Quantile(alpha=0.9),
    "quantile .2": losses.Quantile(alpha=0.2),
}


def _targets(n=6000):
    """A skewed sample of which mean, median and quantiles differ, in an order that repeats."""
    values = np.random.default_rng(1).gamma(1.0, 2.0, 40) + 3
    return np.resize(values, n)


def _steps(loss):
    """Plain steps that end short, and the default where that is another."""
    theta = 1 / curvature(loss) if is_smooth(loss) else 3.0
    plain = {"step": optim.schedulers.InverseScaling(theta, 0.8), "precondition": False, "regularization": 0.0}
    return [plain, {}] if is_smooth(loss) else [plain]


@pytest.mark.parametrize("name", REGRESSION)
def test_a_regression_learns_the_minimizer(name):
    loss, y = REGRESSION[name], _targets()
    units = y.std()

    def objective(u):
        return float(loss(y / units, np.full_like(y, u / units)).mean())

    best = optimize.minimize_scalar(objective, (y.min(), y.max()), tol=1e-9).x
    for steps in _steps(loss):
        model = KernelRegressor(loss=loss, standardize=False, **GIVEN, **steps)
        model.learn_many(np.zeros((len(y), 1)), y)
        found = model.predict_one({0: 0.0})
        # Where the loss is flat near its least, any point of that stretch is as good.
        assert objective(found) - objective(best) < 1e-3
        if name == "ridge":
            assert found == pytest.approx(y.mean(), abs=0.02)
        elif name == "absolute":
            assert found == pytest.approx(np.median(y), abs=0.15)
        elif name.startswith("quantile"):
            assert np.mean(y < found) == pytest.approx(loss.alpha, abs=0.03)


@pytest.mark.parametrize("nu", [0.5, 2.0])
def test_ridge_regression_is_the_mean_of_a_gaussian_process_whose_noise_is_half_the_regularization(nu):
    """Of its regularization times the records: two far places, targets -1 and 1, where f is 1 / (1 + sigma^2).

    For River's squared loss has no half.
    """
    X, y = np.resize([[0.0], [50.0]], (12_000, 1)), np.resize([-1.0, 1.0], 12_000)
    plain = {"precondition": False, "step": optim.schedulers.InverseScaling(1.0 / nu, 1.0), "regularization": nu}
    model = KernelRegressor(Gaussian(1.0), standardize=False, block_size=128, max_features=1024, seed=1, **plain)
    model.learn_many(X, y)
    sigma_squared = nu * 2 / 2
    assert model.predict_one({0: 50.0}) == pytest.approx(1 / (1 + sigma_squared), abs=0.02)


def test_the_page_says_how_each_loss_is_learned():
    table = PAGE.read_text().split("## Which loss", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(\w+)(\(.*?\))` \| .+ \| (\w+) \| (\w+) \|$", table, re.MULTILINE)
    assert len(rows) == 9
    for name, arguments, steps, derivative in rows:
        loss = eval(f"{name}{arguments}", {name: getattr(losses, name, None) or getattr(river_losses, name)})
        estimator = KernelRegressor if isinstance(loss, river_losses.RegressionLoss) else KernelClassifier
        assert estimator(loss=loss).open_arguments["precondition"] == (steps == "preconditioned"), name
        assert (gradient_bound(loss) is not None) == (derivative == "bounded"), name
