"""Encoders of targets that learn from scores: a threshold, or means, beside the coefficients of the machine."""

import abc

from streamkernel.state import Array


class LearningTargets(abc.ABC):
    """An encoder of targets with something of its own to learn from the scores of each mini-batch."""

    @abc.abstractmethod
    def observe(self, y: Array, scores: Array, weights: Array) -> None:
        """Take in a mini-batch before its step.

        Parameters
        ----------
        y
            Encoded targets, float64 of shape (B,).
        scores
            The scores of the records before they are learnt, float64 of shape (B, 1).
        weights
            The records' weights, float64 of shape (B,).

        """

    @abc.abstractmethod
    def take_step(self, size: float, scores: Array, weights: Array) -> None:
        """Take a gradient step of this size in whatever the loss depends on beside the scores.

        Parameters
        ----------
        size
            The step size by which the coefficients decay in the same step, times the largest k(x, x).
        scores, weights
            As for `observe`; of several blocks a step, the scores after those before.

        """
