"""Kernel classification: logistic, support vector and softmax machines."""

import math
from typing import Any

import numpy as np
from river import base
from river.optim.base import Scheduler
from river.optim.losses import BinaryLoss, MultiClassLoss

from streamkernel.estimators.arguments import require_component
from streamkernel.estimators.base import LEAST_PROBABILITY
from streamkernel.estimators.growing import KernelMachine
from streamkernel.estimators.predictors import LabelPredictor
from streamkernel.growth import Growth
from streamkernel.kernels import Kernel
from streamkernel.losses import Softmax
from streamkernel.records.batches import Records
from streamkernel.records.classes import Classes, TwoSides
from streamkernel.records.results import BatchResult, LabelDistributions
from streamkernel.state import Array


class KernelClassifier(KernelMachine, LabelPredictor, base.MiniBatchClassifier):
    """A kernel classifier that grows with its stream.

    By default it is a mixture. Five heads and a linear model share one map of random features and learn with different
    step sizes. The prediction is their weighted mean, and the weights follow the latest losses. If you give an argument
    of the papers' machine, the model is that machine. These arguments are `kernel`, `loss`, `growth`, `block_size`,
    `batch_size`, `step`, `regularization`, `dtype`, `precondition`, `blocks_per_step` and `average`. A value
    that is the default does not ask for it.

    The papers' machine makes one doubly stochastic gradient step every `batch_size` labeled records. The step updates
    blocks of random features: new ones or, if `growth` allows it, old ones. By default a step is preconditioned and
    updates two blocks.

    Neither machine saves frequencies, because a seed reproduces them. Both scale inputs internally, record by record.

    Parameters
    ----------
    kernel
        The kernel of the papers' machine. None (the default) is `Gaussian()` with a bandwidth from the first 200
        records. The mixture has Gaussian kernels of several bandwidths, on one, two or all inputs.
    loss
        None (the default) is the softmax over the classes seen so far. `Log`, River's `Hinge` and `SquaredHinge`
        support two classes: False and True until another label arrives, then the first two seen.
    growth
        `DSG()`, `UDSG()` or `CDSG()`. None (the default) is `CDSG()`, if another argument asks for the papers' machine.
    block_size
        F, the features of a block, at most 2^24. None (the default) is 64 with `precondition`, and 32 without it or if
        `max_features` is smaller.
    batch_size
        B, the labeled records of a step, at most 2^24. Defaults to 32.
    max_features
        The largest number of features, at least `block_size` or 32. A feature is one frequency. None is no limit: the
        cost of a record then grows with the stream. Defaults to 4,096.
    step
        A River schedule of step sizes. With `precondition`, None (the default) is gamma_0 / (1 + t / 500), with gamma_0
        = .049 sqrt(B), at most .7 (.3 for a loss without a bounded derivative). Without it, None is gamma_0 / (1 + t /
        200), with gamma_0 from the first mini-batch.
    regularization
        nu, the regularization, at least 0. Defaults to 1e-6.
    standardize
        Whether to center and scale numbers by running moments. None (the default) follows the kernel.
    max_inputs
        The largest number of inputs. The model ignores and counts all others. Defaults to 10,000.
    max_classes
        The largest number of classes. The model only predicts records of other classes, and counts them. Defaults to
        1,000.
    cache_bytes
        The largest size of the cache for drawn frequencies of the papers' machine, in bytes. It affects only speed.
        Defaults to 64 MB.
    dtype
        "float32" (the default) or "float64".
    seed
        The seed of the random features. None (the default) draws one.
    precondition
        Whether a step solves a ridge regression on the features of its block and its mini-batch, instead of following
        the gradient. Step sizes are then shares of that solution. None (the default) is True if `step` is None and the
        loss has a Lipschitz derivative (not hinge, absolute, quantile and tube), else False. If `block_size`,
        `precondition` or `blocks_per_step` is None, a loaded state keeps its value.
    blocks_per_step
        The blocks that a mini-batch updates one after the other, at most 1,024. Each fits the residuals of the previous
        ones. None (the default) is 2 with `precondition` and 1 without it.
    average
        Whether to predict with the mean of the solutions after each step, instead of the last one. Defaults to False.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamkernel import KernelClassifier
    >>> model = KernelClassifier(seed=1)
    >>> accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> accuracy.get() > 0.9
    True
    >>> model.n_records, model.n_steps, model.n_features
    (1250, 312, 4096)

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, sections 3 and 4.
    [^2]: Li and Poczos, "Utilize old coordinates: faster doubly stochastic gradients for kernel methods".

    """

    loss: BinaryLoss | MultiClassLoss | None
    _targets: Classes | TwoSides

    _mixes = True

    def __init__(
        self,
        kernel: Kernel | None = None,
        loss: BinaryLoss | MultiClassLoss | None = None,
        growth: Growth | None = None,
        block_size: int | None = None,
        batch_size: int = 32,
        max_features: int | None = 4096,
        step: Scheduler | None = None,
        regularization: float = 1e-6,
        standardize: bool | None = None,
        max_inputs: int = 10_000,
        max_classes: int = 1_000,
        cache_bytes: int = 2**26,
        dtype: str = "float32",
        seed: int | None = None,
        precondition: bool | None = None,
        blocks_per_step: int | None = None,
        average: bool = False,
    ) -> None:
        self._keep(locals())
        require_component("loss", loss, BinaryLoss, MultiClassLoss)
        self._targets = TwoSides(loss) if isinstance(loss, BinaryLoss) else Classes(loss or Softmax(), max_classes)
        self._machine = self._build(self._targets)

    @property
    def _multiclass(self) -> bool:
        return not isinstance(self.loss, BinaryLoss)

    def loss_of(self, y: Any, prediction: dict[Any, float]) -> float:
        """Compute the model's own loss of a prediction made before its label was known; see `LabelPredictor.loss_of`.

        Examples
        --------
        >>> from river.optim.losses import Hinge
        >>> from streamkernel import KernelClassifier
        >>> model = KernelClassifier(loss=Hinge(), seed=1)
        >>> model.loss_of(True, {False: 0.5, True: 0.5}), model.loss_of("yes", {False: 0.5, True: 0.5})
        (1.0, nan)

        """
        if y not in prediction or self.loss is None or isinstance(self.loss, Softmax):
            return super().loss_of(y, prediction)
        if isinstance(self.loss, BinaryLoss):
            p = min(max(prediction[y], LEAST_PROBABILITY), 1.0 - LEAST_PROBABILITY)
            side = self._targets.labels.index(y)
            score = math.log(p / (1.0 - p))
            return float(self.loss(bool(side), score if side else -score))
        # The logarithms of the probabilities are the scores, but for a constant.
        scores = np.log(np.maximum(list(prediction.values()), LEAST_PROBABILITY))
        return float(self._targets.loss(np.array([list(prediction).index(y)]), scores[None, :])[0])

    def _distribution_of(self, x: dict[Any, Any]) -> tuple[list[Any], list[float]]:
        labels, probabilities = self._targets.distribution(self._machine.predict_one(x))
        return labels, probabilities[0].tolist()

    def _predicted_probabilities(self, xs: Records) -> tuple[list[Any], Array]:
        return self._targets.distribution(self._machine.predict(xs))

    def _advanced_probabilities(self, batch: BatchResult) -> LabelDistributions | list[dict[Any, float]]:
        return self._targets.probabilities(batch.targets, batch.predictions)
