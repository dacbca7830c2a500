"""Encoders of targets that learn from scores: a threshold, or means, in addition to the coefficients of the machine."""

import abc

from streamkernel.records.targets import Targets
from streamkernel.state import Array


class LearningTargets(Targets):
    """An encoder of targets with something of its own to learn from the scores of each mini-batch."""

    def observe(self, y: Array, scores: Array, weights: Array) -> None:
        """Take in a mini-batch before its step; arguments as for `observed`."""
        self.take_observed(len(y), self.observed(y, scores, weights))

    def take_step(self, size: float, scores: Array, weights: Array) -> None:
        """Take a step as `take_slope` does; arguments as for `slope`."""
        self.take_slope(size * (self.slope(scores, weights) / len(scores)))

    @abc.abstractmethod
    def observed(self, y: Array, scores: Array, weights: Array) -> Array:
        """What there is to be taken in of some rows, as sums over them, float64; nothing is changed.

        Parameters
        ----------
        y
            Encoded targets, float64 of shape (B,).
        scores
            The scores of the records before they are learned, float64 of shape (B, 1).
        weights
            The records' weights, float64 of shape (B,).

        """

    @abc.abstractmethod
    def take_observed(self, n: int, sums: Array) -> None:
        """Take in a mini-batch of n records, of which `observed` gave the sums, before its step."""

    @abc.abstractmethod
    def slope(self, scores: Array, weights: Array) -> float:
        """The sum of the weighted derivatives of the loss by all that it depends on except the scores.

        Parameters
        ----------
        scores, weights
            As for `observed`; of several blocks a step, the scores after those before.

        """

    @abc.abstractmethod
    def take_slope(self, step: float) -> None:
        """Take a gradient step of this length in all that the loss depends on except the scores.

        Parameters
        ----------
        step
            The mean derivative times the step size by which the coefficients decay in the same step, times the largest
            k(x, x).

        """
