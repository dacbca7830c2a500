"""The recommended regressor."""

from functools import partial
from typing import Any, ClassVar

from river import base
from river.optim.losses import Absolute, RegressionLoss, Squared

from streamkernel.adaptive.lags import LaggedCore, TargetLags
from streamkernel.adaptive.machine import NumberMachine
from streamkernel.adaptive.target_experts import NumberExperts
from streamkernel.compute.moments import deviation
from streamkernel.estimators.adaptive import AdaptiveMachineEstimator
from streamkernel.estimators.predictors import DistributionPredictor
from streamkernel.kernels import Kernel
from streamkernel.records.targets import Numbers
from streamkernel.state import excerpt

#: What the mixture minimizes, by what is to be predicted.
_LOSSES: dict[str, RegressionLoss] = {"mean": Squared(), "median": Absolute()}
#: q of the one head among the experts that see the lags: more of them bring nothing more.
LAGGED_DRIFT = 1e-3


class AdaptiveKernelRegressor(AdaptiveMachineEstimator, DistributionPredictor, base.MiniBatchRegressor):
    """An adaptive kernel regressor: accurate without tuning, one record at a time, in bounded memory.

    It works like `AdaptiveKernelClassifier`, for numbers, and standardizes them internally. One ensemble of trees
    learns the residuals of the heads and linear experts. Two more experts add a level, the recent mean of the errors,
    with the trees and without.

    Parameters
    ----------
    ridge
        rho, the ridge regularization, at least 1e-9. Defaults to .03.
    lags
        The number of last known targets that more experts see as inputs, for a target that depends on the ones before
        it, such as an hourly measurement. If labels come late, see `with_lags`. Defaults to 0, at most 1,000.
    predicts
        "mean" (the default) or "median": whether the mixture weighs its experts by squared or by absolute errors.
        "median" lowers the mean absolute error if some errors are large. `loss_of` and the losses of a report use the
        same measure.
    max_bytes
        The largest size of the model in bytes, in memory (`memory_bytes`) and saved: at least 16,384, or 32,768 with
        `lags`. The model then chooses the sizes of its parts at the first labeled record, by its inputs, with the
        arguments as upper limits. It chooses again if more inputs come than there is room for. Trees then begin again,
        and so do linear experts if their size changes. None (the default) means no bound but the arguments.
    kernel, n_features, drift_rates, metric_schedule, buffer_size, n_trees, tree_window, memory
        As in `AdaptiveKernelClassifier`.
    standardize, max_inputs, seed
        As in `AdaptiveKernelClassifier`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamkernel import AdaptiveKernelRegressor
    >>> model = AdaptiveKernelRegressor(seed=1)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> error.get() < 0.35
    True

    """

    predicts: str
    _most_lags = 1_000
    _has_lagged_core = True
    _fewest_outputs = 1
    _left_out: ClassVar[dict[str, Any]] = {**AdaptiveMachineEstimator._left_out, "predicts": "mean"}
    _machine: NumberMachine
    _targets: Numbers

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_features: int = 128,
        ridge: float = 0.03,
        drift_rates: tuple[float, ...] = (0.0, 1e-3, 3e-2),
        metric_schedule: tuple[int, ...] | None = (100, 250, 500, 1000, 2000),
        buffer_size: int = 1000,
        n_trees: int = 6,
        tree_window: int = 2000,
        memory: int = 10_000,
        standardize: bool | None = None,
        max_inputs: int = 1_000,
        lags: int = 0,
        predicts: str = "mean",
        max_bytes: int | None = None,
        seed: int | None = None,
    ) -> None:
        self._keep(locals())
        if not (isinstance(predicts, str) and predicts in _LOSSES):
            raise ValueError(f"predicts must be 'mean' or 'median', got {excerpt(predicts)}")
        inputs, columns = self._parts()
        self._targets = Numbers(Squared())
        make = partial(NumberExperts, absolute=predicts == "median", n_past=int(lags > 0))
        core = self._core(columns, drift_rates, make)
        lagged = None
        if lags:
            seeing = self._core(columns, (LAGGED_DRIFT,), make)
            lagged = LaggedCore(seeing, int(lags), inputs.columns, inputs.standardize)
        past = TargetLags(int(lags), self._targets)
        self._machine = NumberMachine(inputs, self._targets, core, past, lagged)

    def predict_one(self, x: dict[Any, Any], with_dist: bool = False) -> Any:
        """Predict the target of one record; 0 before the first.

        Parameters
        ----------
        x
            Inputs by name.
        with_dist
            Whether to return River's Gaussian distribution with the deviation of the last prediction errors, which is
            NaN before the first. Its `quantile(p)` adds that quantile of the last 500 errors to the prediction, from
            records with a weight above 0. Before there are 100 such errors, it is the Gaussian's quantile. Density and
            `cdf` are always the Gaussian's.

        """
        with self._lock:
            mean, deviation, _ = self._machine.predict_one(x)
            if with_dist:
                from streamkernel.estimators.distribution import residual_gaussian

                return residual_gaussian(mean, deviation**2, self._machine.experts.residuals_kept)
        return mean

    @property
    def _own_loss(self) -> RegressionLoss:
        return _LOSSES[self.predicts]

    @property
    def _unit(self) -> float:
        return float(deviation(self._machine.experts.linear_moments))
