"""Novelty detection by a one-class support vector machine with a learned threshold."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from river import base
from river.optim.base import Scheduler

from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.explanation import NumberExplainer
from streamkernel.estimators.growing import KernelMachine
from streamkernel.growth import Growth, OneClassStep
from streamkernel.kernels import Kernel
from streamkernel.losses import NoveltyHinge
from streamkernel.records.batches import Records
from streamkernel.records.frames import Frame
from streamkernel.records.learning_targets import OneClass
from streamkernel.records.results import BatchResult
from streamkernel.state import Array

#: Scores in a row, with nothing learned, from a detector that cannot tell records apart yet.
PATIENCE = 1_000


class KernelNoveltyDetector(KernelMachine, NumberExplainer, base.AnomalyDetector):
    """A one-class support vector machine for novelty detection that grows with its stream.

    It learns a function f that is large where records are frequent, and a threshold tau with a share `nu` of the
    records below it. A record's score is tau - f(x). A higher score means a more unusual record, and a score above 0
    means a novelty. It needs no labels.

    Each mini-batch makes a step of doubly stochastic gradients on nu/2 |f|^2 + E max(0, tau - f(x)) - nu tau. All its
    gradients have one sign, so inequality (9) never allows reuse of a block. `CDSG()` therefore grows like `DSG()`, up
    to `max_features`.

    Parameters
    ----------
    nu
        The share of records to flag, in (0, 1]. Finding the threshold needs at least some hundreds of records divided
        by nu. Defaults to 0.1.
    kernel, growth, batch_size, max_features, standardize, max_inputs, cache_bytes, dtype, seed
        As in `KernelClassifier`. The model is always the papers' machine.
    block_size
        F, the features of a block, at most 2^24. None (the default) is 32.
    step
        A River schedule of step sizes. None (the default) is 1 / (nu (t + 10 + 1 / nu)), which makes f the mean over
        all records so far.
    precondition
        None (the default) or False. True raises an error, because preconditioned steps would change f, which depends on
        the regularization alone.

    Examples
    --------
    >>> import random
    >>> from streamkernel import KernelNoveltyDetector
    >>> model, rng = KernelNoveltyDetector(nu=0.05, seed=1), random.Random(1)
    >>> for _ in range(5000):
    ...     model.learn_one({"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)})
    >>> model.score_one({"a": 0.0, "b": 0.0}) < 0 < model.score_one({"a": 4.0, "b": -4.0})
    True

    River's filters turn scores into a yes or no, also for metrics that need scores from 0 to 1. The model must also
    learn flagged records, or the threshold would not know their number. River's `QuantileFilter` has its own threshold
    for that share. Its default, `protect_anomaly_detector=True`, lets the detector learn nothing, because all records
    have the same score at first and count as flagged.

    >>> from river import anomaly
    >>> novelties = anomaly.QuantileFilter(
    ...     KernelNoveltyDetector(nu=0.05, seed=1), q=0.95, protect_anomaly_detector=False
    ... )
    >>> for _ in range(2000):
    ...     novelties.learn_one({"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)})
    >>> novelties.classify(novelties.score_one({"a": 4.0, "b": -4.0}))
    True

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, section 4.
    [^2]: Schoelkopf et al., "Estimating the support of a high-dimensional distribution", 2001.

    """

    nu: float
    _targets: OneClass
    _left_out: ClassVar[dict[str, Any]] = {"precondition": False, "blocks_per_step": 1}
    blocks_per_step = None
    average = False

    def __init__(
        self,
        nu: float = 0.1,
        kernel: Kernel | None = None,
        growth: Growth | None = None,
        block_size: int | None = None,
        batch_size: int = 32,
        max_features: int | None = 4096,
        step: Scheduler | None = None,
        standardize: bool | None = None,
        max_inputs: int = 10_000,
        cache_bytes: int = 2**26,
        dtype: str = "float32",
        seed: int | None = None,
        precondition: bool | None = None,
    ) -> None:
        self._keep(locals())
        if precondition:
            raise ValueError(
                "precondition must be None or False: preconditioned steps would change the regularization, which "
                "determines what a one-class machine learns"
            )
        loss = NoveltyHinge(nu)
        self.regularization = float(nu)  # it scales f and tau, and moves neither against the other
        self._targets = OneClass(loss)
        self._waiting = 0, 0
        self._machine = self._build(self._targets)

    @property
    def threshold(self) -> float:
        """The threshold tau, in units of f; 0 before the first step."""
        return self._targets.threshold

    @property
    def n_flagged(self) -> int:
        """The number of records flagged before they were learned."""
        return self._targets.n_flagged

    @property
    def gamma_0(self) -> float:
        """The first step size."""
        gamma_0: float = self._schedule().get(0)
        return gamma_0

    def score_one(self, x: dict[Any, Any]) -> float:
        """Score how unusual a record is, tau - f(x). Above 0 it is a novelty; 0 before the first step."""
        with self._lock:
            if not self._machine.is_ready:
                self._count_waiting()
            return self.threshold - float(self._machine.predict_one(x)[0, 0])

    def score_many(self, X: Any) -> Any:
        """Score the rows of a data frame or array, equal to `score_one` except for rounding.

        Parameters
        ----------
        X
            A frame or an array of shape (n, d), as for `learn_many`.

        Returns
        -------
        A series of n numbers in the frame's backend, with its index. For an array, an array of shape (n,).

        """
        frame = Frame(X)
        with self._lock:
            return frame.series(self._predicted_numbers(frame))

    def advance(
        self, xs: Sequence[Mapping[Any, Any]], ys: Sequence[Any] | None = None, ws: Sequence[float] | None = None
    ) -> AdvanceResult:
        """Score records, then learn them, one after the other. The predictions of the result are the scores.

        Parameters
        ----------
        xs
            The records' inputs.
        ys
            None for each record that the model only scores. Other values have no effect. None (the default) learns all.
        ws
            Weights. All 1 by default.

        Raises
        ------
        ValueError
            A record is unusable. The call then learns nothing.

        """
        return super().advance(xs, [True] * len(xs) if ys is None else ys, ws)

    def learn_one(self, x: dict[Any, Any], w: float = 1.0) -> None:  # type: ignore[override]
        """Learn a record; inputs and the weight are as for the other estimators, and there is no target."""
        super().learn_one(x, True, w)

    def learn_many(self, X: Any, w: Sequence[float] | None = None) -> None:  # type: ignore[override]
        """Learn rows as `learn_one` would one by one; see `KernelClassifier.learn_many`."""
        frame = Frame(X)
        with self._lock:
            self._machine.learn(frame, [True] * len(frame), w)

    def batch_step(self, X: Any, y: Any = None, w: Sequence[float] | None = None) -> AdvanceResult:
        """Score the rows of a data frame or array, then make one step on them; see `KernelClassifier.batch_step`.

        Parameters
        ----------
        X, w
            As in `KernelClassifier.batch_step`.
        y
            None for each row that the model only scores. None (the default) learns all.

        """
        frame = Frame(X)
        return super().batch_step(X, [True] * len(frame) if y is None else y, w)

    def loss_of(self, y: Any, score: float, unit: float | None = None) -> float:  # noqa: ARG002 - there is no label
        """Compute the model's own loss of a score, max(0, score) - nu tau.

        Parameters
        ----------
        y, unit
            Not used: there is no label, and the unit of scores is always f.
        score
            The result of `score_one`.

        Examples
        --------
        >>> from streamkernel import KernelNoveltyDetector
        >>> KernelNoveltyDetector().loss_of(None, 0.5)
        0.5

        """
        return float(self._targets.loss(self.threshold, self.threshold - score))

    def _count_waiting(self) -> None:
        """Count scores that are asked in a row before there is one to tell, and warn of those who do not learn."""
        n_records, n_scores = self._waiting
        n_scores = n_scores + 1 if n_records == self.n_records else 1
        self._waiting = self.n_records, n_scores
        if n_scores == PATIENCE:
            warnings.warn(
                f"{PATIENCE:,} records in a row were scored and none was learned, and the {self.n_records:,} learned "
                "before are too few to find anomalies: set protect_anomaly_detector=False in River's QuantileFilter, "
                "whose default prevents this detector from learning, or learn records before you score them",
                RuntimeWarning,
                stacklevel=3,
            )

    def _schedule(self) -> Scheduler:
        return self.step or OneClassStep(self.nu)

    def _predicted_numbers(self, xs: Records) -> Array:
        return self.threshold - self._machine.predict(xs)[:, 0]

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        return AdvanceResult(self._targets.novelty(batch.targets, batch.predictions), None, batch.losses)
