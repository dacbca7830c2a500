"""The recommended regressor."""

from functools import partial
from typing import Any, ClassVar

from river import base
from river.optim.losses import Absolute, Squared

from streamkernel.adaptive.lagged_core import LaggedCore
from streamkernel.adaptive.number_experts import NumberExperts
from streamkernel.adaptive.number_machine import NumberMachine
from streamkernel.adaptive.target_lags import TargetLags
from streamkernel.compute.moments import deviation
from streamkernel.compute.number_pass import DEVIATION, PREDICTION
from streamkernel.estimators.adaptive import AdaptiveMachineEstimator
from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.distribution import residual_gaussian
from streamkernel.estimators.explanation import NumberExplainer
from streamkernel.finite import loss_of_number
from streamkernel.kernels import Kernel
from streamkernel.records.batches import Records
from streamkernel.records.frames import Frame
from streamkernel.records.numbers import Numbers, plain_number
from streamkernel.records.results import BatchResult
from streamkernel.state import Array, excerpt

#: What the mixture minimizes, by what is to be predicted.
_LOSSES = {"mean": Squared(), "median": Absolute()}
#: q of the one head among the experts that see the lags: more of them bring nothing more.
LAGGED_DRIFT = 1e-3


class AdaptiveKernelRegressor(AdaptiveMachineEstimator, NumberExplainer, base.MiniBatchRegressor):
    """An adaptive kernel regressor: accurate without tuning, one record at a time, in bounded memory.

    It works like `AdaptiveKernelClassifier`, for numbers, and standardizes them internally. One ensemble of trees
    learns the residuals of the heads and linear experts. Two more experts add a level, the recent mean of the errors,
    with the trees and without.

    Parameters
    ----------
    kernel
        `Gaussian`, `Laplacian`, `Cauchy`, `Matern`, a custom Fourier kernel, or sums, products and multiples of these.
        The factors of a sum are shares of `n_features`. None (the default) is `Gaussian()` with a bandwidth that
        follows the metric.
    n_features
        F, the number of random frequencies, each with a cosine and a sine. Defaults to 128.
    ridge
        rho, the ridge regularization, at least 1e-9. Defaults to .03.
    drift_rates
        q, how fast the coefficients may drift. There is one head for each rate, and each rate is given once. Defaults
        to 0, .001 and .03.
    metric_schedule
        Numbers of labeled records after which the metric is learned again, in addition to changes. None turns this off,
        also after a change. Defaults to 100, 250, 500, 1,000 and 2,000.
    buffer_size
        The number of last records from which the metric is learned. Defaults to 1,000.
    n_trees
        The trees of an ensemble, 0 for none. A tree is replaced whenever a share 1 / `n_trees` of their window is new.
        Defaults to 6.
    tree_window
        The number of last records on which trees grow. Defaults to 2,000.
    memory
        The number of last records in which experts search for nearest neighbors, at most 100,000 / d for d inputs. 0
        means no such experts. Defaults to 10,000.
    standardize
        Whether to center and scale numbers by running moments. None (the default) follows the kernel.
    max_inputs
        The largest number of inputs. The model ignores and counts all others. Defaults to 1,000.
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
    seed
        The seed of the random features. None (the default) draws one.

    Raises
    ------
    ValueError
        An argument is out of range.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamkernel import AdaptiveKernelRegressor
    >>> model = AdaptiveKernelRegressor(seed=1)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> error.get() < 0.35
    True

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007.
    [^2]: Radhakrishnan et al., "Mechanism for feature learning in neural networks and backpropagation-free machine
          learning models", 2024 (the average gradient outer product).
    [^3]: Herbster and Warmuth, "Tracking the best expert", 1998.
    [^4]: Wolpert, "Stacked generalization", 1992.

    """

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
        self.kernel = kernel
        self.n_features = n_features
        self.ridge = ridge
        self.drift_rates = drift_rates
        self.metric_schedule = metric_schedule
        self.buffer_size = buffer_size
        self.n_trees = n_trees
        self.tree_window = tree_window
        self.memory = memory
        self.standardize = standardize
        self.max_inputs = max_inputs
        self.lags = lags
        self.predicts = predicts
        self.max_bytes = max_bytes
        self.seed = seed
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

    @property
    def n_clipped_targets(self) -> int:
        """The number of targets clipped to +-1e100, because larger squares would overflow."""
        return self._targets.n_limited

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
        lock = self._lock
        lock.acquire()
        try:
            mean, deviation, _ = self._machine.predict_one(x)
            if with_dist:
                return residual_gaussian(mean, deviation**2, self._machine.experts.residuals_kept)
        finally:
            lock.release()
        return mean

    def predict_many(self, X: Any, with_dist: bool = False) -> Any:
        """Predict the targets of the rows of a data frame or array, as `predict_one` would one by one.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.
        with_dist
            Whether to return the mean and the deviation of each row's Gaussian distribution.

        Returns
        -------
        A series of n numbers in the frame's backend, with its index. For an array, an array of shape (n,). With
        distributions, a frame with the columns `mu` and `sigma`, named as in River's `Gaussian`. For an array, an array
        of shape (n, 2).

        Examples
        --------
        >>> import pandas as pd
        >>> from streamkernel import AdaptiveKernelRegressor
        >>> model = AdaptiveKernelRegressor(seed=1)
        >>> X = pd.DataFrame({"a": [i % 10 for i in range(300)]})
        >>> model.learn_many(X, 2.0 * X["a"])
        >>> model.predict_many(X.tail(1), with_dist=True).round(0)
               mu  sigma
        299  18.0    0.0

        """
        frame = Frame(X)
        with self._lock:
            predictions = self._machine.predict(frame)
        if with_dist:
            return frame.table(["mu", "sigma"], predictions[:, [PREDICTION, DEVIATION]])
        return frame.series(predictions[:, PREDICTION].copy())

    def loss_of(self, y: float, prediction: float, unit: float | None = None) -> float:
        """Compute the model's own loss of a prediction made before its target was known.

        It is the squared error, or the absolute error of a model that predicts the median. The method is not called
        `loss`, because `loss` is an argument of the growing regressor.

        Parameters
        ----------
        y
            The target.
        prediction
            The result of `predict_one`.
        unit
            The unit that divides both, as in learning. None (the default) is the deviation of the targets learned so
            far.

        Raises
        ------
        ValueError
            `learn_one` would reject the target.

        Examples
        --------
        >>> from streamkernel import AdaptiveKernelRegressor
        >>> model = AdaptiveKernelRegressor(seed=1)
        >>> model.loss_of(3.0, 1.0), model.loss_of(3.0, 1.0, unit=2.0)
        (4.0, 1.0)

        """
        unit = float(deviation(self._machine.experts.linear_moments)) if unit is None else unit
        return loss_of_number(_LOSSES[self.predicts], plain_number(y), prediction, unit)

    def _predicted_numbers(self, xs: Records) -> Array:
        return self._machine.predict(xs)[:, PREDICTION]

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        return AdvanceResult(batch.predictions.ravel().tolist(), None, batch.losses, batch.deviations)
