"""The recommended classifier."""

from functools import partial
from typing import Any

from river import base

from streamkernel.adaptive.label_experts import LabelExperts
from streamkernel.adaptive.label_machine import LabelMachine
from streamkernel.adaptive.target_lags import TargetLags
from streamkernel.estimators.adaptive import AdaptiveMachineEstimator
from streamkernel.estimators.label_predictor import LabelPredictor
from streamkernel.kernels import Kernel
from streamkernel.losses import Softmax
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes
from streamkernel.state import Array


class AdaptiveKernelClassifier(AdaptiveMachineEstimator, LabelPredictor, base.MiniBatchClassifier):
    """A kernel classifier that learns all a record says, at once, in bounded memory.

    Recursive least squares on random features, at three drift rates, two linear experts, two ensembles of trees on the
    last records and the nearest of these, mixed by how well each did lately, and stacked: corrected by least squares on
    what all of them say. The inputs are weighed by a metric that is learnt from the last records. When the mixture
    comes to do worse than it did, the stream has changed: the metric is learnt again from the records since, and the
    trees' window forgets those before.

    Parameters
    ----------
    kernel
        `Gaussian`, `Laplacian`, `Cauchy`, `Matern`, a Fourier kernel of your own, or sums, products and multiples of
        these, whose factors are shares of `n_features`. None (the default) is `Gaussian()`, whose bandwidth follows the
        metric.
    n_features
        F, random frequencies, each a cosine and a sine. Defaults to 128.
    ridge
        rho, at least 1e-9. Defaults to .1.
    drift_rates
        q, how fast the coefficients may drift; one head a rate, each rate once. Defaults to 0, .001 and .03.
    metric_schedule
        Labelled records after which the metric is learnt anew, besides after a change; None is never, nor after a
        change. Defaults to 100, 250, 500, 1,000 and 2,000.
    buffer_size
        The last records, from which it is learnt. Defaults to 1,000.
    n_trees
        Trees of an ensemble, 0 for none. One is grown anew whenever that share of their window is new. Defaults to 6.
    tree_window
        The last records, on which trees are grown. Defaults to 2,000.
    memory
        The last records, of which the nearest are experts: 100,000 / d at most, of d inputs. 0 for no such experts.
        Defaults to 10,000.
    standardize
        Whether numbers are centred and scaled by running moments. None (the default) is what the kernel asks for.
    max_inputs
        Inputs past this number are ignored and counted. Defaults to 1,000.
    max_classes
        Records of classes past this number are predicted only, and counted. Defaults to 1,000.
    lags
        1 for an expert that counts which label followed which, for labels that take turns or stay. For labels that come
        late, see `with_lags`. Defaults to 0.
    max_bytes
        What the model may take, in memory (`memory_bytes`) and saved, at least 16,384. The sizes of its parts, the
        arguments being the most, are then chosen at the first labelled record, by its inputs; and anew when more inputs
        or classes come than there is room for, where trees and linear experts begin again. None (the default) is no
        bound but the arguments.
    seed
        The stream of random features. None (the default) draws one.

    Raises
    ------
    ValueError
        An argument is out of its range.

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
        self.max_classes = max_classes
        self.lags = lags
        self.max_bytes = max_bytes
        self.seed = seed
        self._at_least("max_classes", 2)
        inputs, columns = self._parts()
        self._targets = Classes(Softmax(), max_classes)
        core = self._core(columns, drift_rates, partial(LabelExperts, n_past=int(lags)))
        self._machine = LabelMachine(inputs, self._targets, core, TargetLags(int(lags), self._targets))

    def _distribution_of(self, x: dict[Any, Any]) -> tuple[list[Any], list[float]]:
        return self._targets.labels, self._machine.predict_one(x)

    def _predicted_probabilities(self, xs: Records) -> tuple[list[Any], Array]:
        return self.classes, self._machine.predict(xs)
