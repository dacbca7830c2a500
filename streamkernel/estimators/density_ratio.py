"""Density ratios: how much more frequent a record is in one of two samples."""

from typing import Any

import numpy as np
from river.optim.base import Scheduler

from streamkernel.estimators.base import AdvanceResult
from streamkernel.estimators.explanation import NumberExplainer
from streamkernel.estimators.growing import KernelMachine
from streamkernel.estimators.predictors import NumberPredictor
from streamkernel.growth import Growth
from streamkernel.kernels import Kernel
from streamkernel.losses import KLDensityRatio
from streamkernel.records.batches import Records
from streamkernel.records.learning_targets import TwoSamples
from streamkernel.records.results import BatchResult
from streamkernel.state import Array, excerpt


class KernelDensityRatio(KernelMachine, NumberExplainer):
    """A growing kernel machine for the log ratio log p/q of the densities of two samples.

    Each record belongs to the sample p or q, in any order and number. Its weight is 1 over the share of its sample
    among the last records. The model minimizes E_q exp f - E_p f, and the minimizer is f = log p/q.

    The `divergence` estimates the Kullback-Leibler divergence of p from q, in nats, from scores made before their
    records were learned. Its expectation is at most the true value, so it is about 0 or below if the samples are alike.
    With a reference as q and the live stream as p, it is a drift alarm.

    Parameters
    ----------
    p, q
        The labels of the two samples. Default to "p" and "q".
    clip
        The largest log ratio that the model distinguishes, above 0. It limits f to [-clip, clip] in predictions and in
        `divergence`. Defaults to 5.
    window
        How many records the averages look back. `divergence` counts the records of each sample, and the shares count
        both samples together. Older records count less. Defaults to 2,000.
    kernel, growth, block_size, batch_size, max_features, step, regularization, standardize
        As in `KernelClassifier`. The model is always the papers' machine.
    max_inputs, cache_bytes, dtype, seed, precondition, blocks_per_step
        As in `KernelClassifier`.
    average
        Whether to predict with the mean of the solutions after each step, instead of the last one. The divergence
        always uses the last one. Defaults to False.

    Examples
    --------
    >>> import random
    >>> from streamkernel import KernelDensityRatio
    >>> model, rng = KernelDensityRatio(seed=1), random.Random(1)
    >>> for _ in range(5000):
    ...     model.learn_one({"a": rng.gauss(1, 1)}, "p")
    ...     model.learn_one({"a": rng.gauss(0, 1)}, "q")
    >>> 1 < model.predict_one({"a": 2.0}) < 2  # 1.5, as a - 1/2 is the logarithm of the ratio
    True
    >>> 0.4 < model.divergence < 0.6  # 1/2
    True

    References
    ----------
    [^1]: Dai et al., "Scalable kernel methods via doubly stochastic gradients", 2014, section 4.
    [^2]: Nguyen, Wainwright and Jordan, "Estimating divergence functionals and the likelihood ratio by convex risk
        minimization", 2010.

    """

    p: str | bool | int
    q: str | bool | int
    _targets: TwoSamples
    _supervised = True

    def __init__(
        self,
        p: str | bool | int = "p",
        q: str | bool | int = "q",
        clip: float = 5.0,
        window: int = 2000,
        kernel: Kernel | None = None,
        growth: Growth | None = None,
        block_size: int | None = None,
        batch_size: int = 32,
        max_features: int | None = 4096,
        step: Scheduler | None = None,
        regularization: float = 1e-6,
        standardize: bool | None = None,
        max_inputs: int = 10_000,
        cache_bytes: int = 2**26,
        dtype: str = "float32",
        seed: int | None = None,
        precondition: bool | None = None,
        blocks_per_step: int | None = None,
        average: bool = False,
    ) -> None:
        self._keep(locals())
        for name, label in (("p", p), ("q", q)):
            if not isinstance(label, str | bool | int | np.bool_ | np.integer):
                raise ValueError(
                    f"{name} must be the label of a sample, a string, boolean or whole number, got {excerpt(label)}"
                )
        if p == q:
            raise ValueError(f"q must differ from p, got p={excerpt(p)} and q={excerpt(q)}")
        self._targets = TwoSamples(KLDensityRatio(clip), p, q, window)
        self._machine = self._build(self._targets)

    @property
    def divergence(self) -> float:
        """E_p f - E_q exp f + 1 over the last records, in nats: KL(p, q) or less. NaN before both samples occurred."""
        with self._lock:
            return self._targets.divergence

    @property
    def donsker_varadhan(self) -> float:
        """E_p f - log E_q exp f over the last records, in nats, the other form of the divergence.

        It is never below `divergence`, and a constant added to f does not change it. The logarithm of a mean over few
        records of q is too low on average, so this form can exceed KL(p, q). NaN before both samples occurred.

        Examples
        --------
        >>> from streamkernel import KernelDensityRatio
        >>> KernelDensityRatio().donsker_varadhan
        nan

        """
        with self._lock:
            return self._targets.donsker_varadhan

    @property
    def sample_shares(self) -> dict[Any, float]:
        """The share of each sample among the last records, by label. 1/2 each before the first."""
        with self._lock:
            of_q, of_p = self._targets.shares.tolist()
        return {self.p: of_p, self.q: of_q}

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict log p/q of one record, from -`clip` to `clip`; 0 before the first step."""
        with self._lock:
            return float(self._targets.log_ratios(self._machine.predict_one(x))[0])

    predict_many = NumberPredictor.predict_many

    def loss_of(self, y: Any, prediction: float, unit: float | None = None) -> float:  # noqa: ARG002 - nats
        """Compute the model's own loss of a prediction made before the record's sample was known.

        Parameters
        ----------
        y
            The label of the sample.
        prediction
            The result of `predict_one`.
        unit
            Not used: the unit of log ratios is always nats.

        Raises
        ------
        ValueError
            The label is neither `p` nor `q`.

        Examples
        --------
        >>> from streamkernel import KernelDensityRatio
        >>> model = KernelDensityRatio()
        >>> model.loss_of("p", 2.0), model.loss_of("q", 0.0)
        (-2.0, 1.0)

        """
        ((label,), _) = self._targets.prepare([y])
        return float(self._targets.loss(label == self.p, prediction))

    def _predicted_numbers(self, xs: Records) -> Array:
        return self._targets.log_ratios(self._machine.predict(xs))

    def _outcome(self, batch: BatchResult) -> AdvanceResult:
        return AdvanceResult(self._targets.log_ratios(batch.predictions), None, batch.losses)
