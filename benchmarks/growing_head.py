"""A least squares head that grows: blocks of new frequencies are tried beside it, and join it where they pay."""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.adaptive.heads import LeastSquaresHeads
from streamkernel.compute.experts import Heads, predict_experts, update_heads
from streamkernel.compute.jit import jit
from streamkernel.kernels import Gaussian

F = 128  # frequencies of a block, the estimator's default
RIDGE = 0.03  # the estimator's
WORST = 4.0  # no squared error counts as more variances of the target
Array = np.ndarray[Any, np.dtype[Any]]


class Metric(NamedTuple):
    """What inputs are multiplied by, and the bandwidth, from a record on."""

    begins: int
    scales: Array
    bandwidth: float


@jit
def advance_head(Phi: Array, targets: Array, heads: Heads, scores: Array) -> None:
    """Predict, then learn, records one after the other; `scores`, (n,), is filled with the predictions."""
    said, truth, room, no_experts = np.empty((1, 1)), np.empty(1), np.empty(1), np.empty((0, 1, 1))
    for r in range(Phi.shape[0]):
        predict_experts(heads.W, no_experts, Phi[r], said)
        scores[r] = said[0, 0]
        truth[0] = targets[r]
        update_heads(heads, Phi[r], truth, said, 1.0, room)


class GrowingHead:
    """Recursive least squares on blocks of frequencies, of which some join later.

    Parameters
    ----------
    metric
        The first.
    seed
        Of the frequencies.
    n_blocks, most
        Blocks to begin with, and in the end. With none, the inputs are not columns either: the head learns a residual.
    window
        Records that a block is tried on.
    amplitude
        What the columns of blocks that join later are multiplied by. Below 1 their ridge is the larger: what a head
        leaves over is mostly noise.
    drift
        q.

    """

    def __init__(
        self, metric: Metric, seed: int, n_blocks: int, most: int, window: int, amplitude: float, drift: float
    ) -> None:
        self.most, self.window, self.amplitude, self.drift = most, window, amplitude, drift
        self.seed = seed
        self.metric = metric
        self.n_first = n_blocks
        self.keys = np.arange(len(metric.scales), dtype=np.uint64)
        self.n_drawn = 0
        self.blocks = [self._draw() for _ in range(n_blocks)]
        self.n_numbers = 0  # of all matrices at all records, what the work goes with
        self._begin()

    def set_metric(self, metric: Metric, X: Array, targets: Array) -> None:
        """Learn the last records again under another metric, by the blocks that have joined."""
        self.metric = metric
        for block in self.blocks:
            block.set_metric(metric.scales, metric.bandwidth)
        self._begin()
        self._pass(self.head, self._columns(X), targets)

    def advance(self, X: Array, targets: Array) -> Array:
        """Predict, then learn, scaled rows; the predictions."""
        scores = self._pass(self.head, self._columns(X), targets)
        if len(self.blocks) < self.most:
            left = targets - scores
            said = self._pass(self.trial, self.amplitude * self._of(self.candidate, X), left)
            self.gains.extend(np.minimum(left**2, WORST) - np.minimum((left - said) ** 2, WORST))
            if len(self.gains) >= self.window:
                gains = np.array(self.gains[self.window // 2 :])
                if gains.mean() > gains.std() / np.sqrt(len(gains)):
                    self._join()
                self._try_another()
        return scores

    def _begin(self) -> None:
        self.head = fresh(len(self.blocks) * 2 * F + (1 + len(self.keys) if self.n_first else 0), self.drift)
        self._try_another()

    def _try_another(self) -> None:
        self.candidate, self.trial = self._draw(), fresh(2 * F, self.drift)
        self.gains: list[float] = []

    def _draw(self) -> AdaptiveFeatures:
        """The next block."""
        block = AdaptiveFeatures(Gaussian(), F, 1_000 * self.seed + self.n_drawn)
        self.n_drawn += 1
        block.begin(len(self.keys))
        block.set_metric(self.metric.scales, self.metric.bandwidth)
        return block

    def _join(self) -> None:
        """The block joins with what it knows: its part of P stands beside the head's, with nothing between them."""
        heads = self.head, self.trial
        D = sum(one.W.shape[2] for one in heads)
        P, first = np.zeros((1, D, D)), 0
        for one in heads:
            last = first + one.W.shape[2]
            P[:, first:last, first:last] = one.settled_P()
            first = last
        W = np.concatenate([one.W for one in heads], axis=2)
        self.head = fresh(D, self.drift)
        self.head.load_state({"heads_P": P, "heads_W": W, "heads_late": np.zeros((1, 0, D))}, D, 1)
        self.blocks.append(self.candidate)

    def _of(self, block: AdaptiveFeatures, X: Array) -> Array:
        return block.of(X, self.keys)[:, : 2 * F]

    def _columns(self, X: Array) -> Array:
        """Constant and inputs, then the blocks in the order in which they came."""
        inputs = [self.blocks[0].of(X, self.keys)[:, 2 * F :]] if self.n_first else []
        first = [self._of(block, X) for block in self.blocks[: self.n_first]]
        joined = [self.amplitude * self._of(block, X) for block in self.blocks[self.n_first :]]
        return np.hstack([np.empty((len(X), 0)), *inputs, *first, *joined])

    def _pass(self, head: LeastSquaresHeads, Phi: Array, targets: Array) -> Array:
        scores = np.zeros(len(Phi))
        if Phi.shape[1]:
            advance_head(np.ascontiguousarray(Phi), targets, head.arrays, scores)
        self.n_numbers += len(Phi) * Phi.shape[1] ** 2
        return scores


def fresh(n_columns: int, drift: float) -> LeastSquaresHeads:
    """A head that knows nothing."""
    head = LeastSquaresHeads(RIDGE, (drift,))
    head.begin(n_columns, 1)
    return head
