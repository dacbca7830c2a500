"""The recommended classifier."""

from functools import partial
from typing import Any

from river import base

from streamkernel.adaptive.lags import TargetLags
from streamkernel.adaptive.machine import LabelMachine
from streamkernel.adaptive.target_experts import LabelExperts
from streamkernel.estimators.adaptive import AdaptiveMachineEstimator
from streamkernel.estimators.predictors import LabelPredictor
from streamkernel.kernels import Kernel
from streamkernel.losses import Softmax
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes
from streamkernel.state import Array


class AdaptiveKernelClassifier(AdaptiveMachineEstimator, LabelPredictor, base.MiniBatchClassifier):
    """An adaptive kernel classifier: accurate without tuning, one record at a time, in bounded memory.

    The classifier combines several experts: recursive least squares on random features at three drift rates, two linear
    experts, two ensembles of trees, and nearest neighbors among the last records. A mixture weighs them by their recent
    losses. Stacking then corrects the mixture by least squares on all predictions.

    A metric, learned from the last records, weighs the inputs. If the mixture's losses rise, the stream has changed.
    The classifier then learns the metric again from the records since the change, and the trees' window forgets older
    records.

    Parameters
    ----------
    kernel
        `Gaussian`, `Laplacian`, `Cauchy`, `Matern`, a custom Fourier kernel, or sums, products and multiples of these.
        The factors of a sum are shares of `n_features`. None (the default) is `Gaussian()` with a bandwidth that
        follows the metric.
    n_features
        F, the number of random frequencies, each with a cosine and a sine. Defaults to 128.
    ridge
        rho, the ridge regularization, at least 1e-9. Defaults to .1.
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
    max_classes
        The largest number of classes. The model only predicts records of other classes, and counts them. Defaults to
        1,000.
    lags
        1 adds an expert that counts which label followed which, for labels that alternate or stay the same. If labels
        come late, see `with_lags`. Defaults to 0.
    max_bytes
        The largest size of the model in bytes, in memory (`memory_bytes`) and saved, at least 16,384. The model then
        chooses the sizes of its parts at the first labeled record, by its inputs, with the arguments as upper limits.
        It chooses again if more inputs or classes come than there is room for. Trees then begin again, and so do linear
        experts if their size changes. None (the default) means no bound but the arguments.
    seed
        The seed of the random features. None (the default) draws one.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamkernel import AdaptiveKernelClassifier
    >>> model = AdaptiveKernelClassifier(seed=1)
    >>> accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> accuracy.get() > 0.9
    True
    >>> max(model.feature_importances_, key=model.feature_importances_.get)
    'empty_server_form_handler'

    References
    ----------
    [^1]: Rahimi and Recht, "Random features for large-scale kernel machines", 2007.
    [^2]: Radhakrishnan et al., "Mechanism for feature learning in neural networks and backpropagation-free machine
          learning models", 2024 (the average gradient outer product).
    [^3]: Herbster and Warmuth, "Tracking the best expert", 1998.
    [^4]: Wolpert, "Stacked generalization", 1992.

    """

    _most_lags = 1
    _has_lagged_core = False
    _fewest_outputs = 2
    _machine: LabelMachine

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_features: int = 128,
        ridge: float = 0.1,
        drift_rates: tuple[float, ...] = (0.0, 1e-3, 3e-2),
        metric_schedule: tuple[int, ...] | None = (100, 250, 500, 1000, 2000),
        buffer_size: int = 1000,
        n_trees: int = 6,
        tree_window: int = 2000,
        memory: int = 10_000,
        standardize: bool | None = None,
        max_inputs: int = 1_000,
        max_classes: int = 1_000,
        lags: int = 0,
        max_bytes: int | None = None,
        seed: int | None = None,
    ) -> None:
        self._keep(locals())
        inputs, columns = self._parts()
        self._targets = Classes(Softmax(), max_classes)
        core = self._core(columns, drift_rates, partial(LabelExperts, n_past=int(lags)))
        self._machine = LabelMachine(inputs, self._targets, core, TargetLags(int(lags), self._targets))

    def _distribution_of(self, x: dict[Any, Any]) -> tuple[list[Any], list[float]]:
        return self._targets.labels, self._machine.predict_one(x)

    def _predicted_probabilities(self, xs: Records) -> tuple[list[Any], Array]:
        return self.classes, self._machine.predict(xs)
