"""Checked reuse: an old block is updated again where inequality (9) allows it.

For a step s > 0 of a block with gradient coefficient beta, at step size gamma:

    2 |beta - s gbar|^2 + 2 s^2 v  <=  |beta|^2 + gamma^2 |gbar|^2

It holds for s- <= s <= s+, the roots (2 b -+ sqrt(4 b^2 - A c)) / A, with A = 2 (|gbar|^2 + v), b = <beta, gbar> and
c = |beta|^2 - gamma^2 |gbar|^2. A step of gamma itself needs no roots, only the margin there.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.arguments import require_number
from streamkernel.compute.growing_step import PASSING_SHARE
from streamkernel.compute.mixture_parts import margin_of
from streamkernel.growth.base import BlockUpdate, Growth, GrowthContext, new_block
from streamkernel.state import Array


def in_order(values: Array) -> Any:
    """The sums over the last axis, one number after the other: numpy's own sums depend on how many there are."""
    return values[..., 0] if values.shape[-1] == 1 else np.add.accumulate(values, axis=-1)[..., -1]


class BlockTerms(NamedTuple):
    """The terms of (9) for several blocks, or for each of their classes as if it were alone."""

    beta2: Array  #: |beta|^2, <beta, gbar> and |gbar|^2, float64; the last one fits the shape of the others
    b: Array
    gbar2: Any
    gamma: float  #: The step size, and v
    variance: float

    @classmethod
    def of_blocks(cls, beta: Array, gbar: Array, gamma: float, variance: float) -> "BlockTerms":
        """The terms of blocks, of beta (blocks, K) and gbar (K,)."""
        return cls(in_order(beta * beta), in_order(beta * gbar), in_order(gbar * gbar), gamma, variance)

    @classmethod
    def of_classes(cls, beta: Array, gbar: Array, gamma: float, variance: float) -> "BlockTerms":
        """The terms of all classes of blocks, each (blocks, K)."""
        return cls(beta * beta, beta * gbar, gbar * gbar, gamma, variance)

    def roots(self) -> tuple[Array, Array]:
        """The intervals of steps that (9) allows; from inf to -inf where there are none.

        Examples
        --------
        >>> BlockTerms.of_blocks(np.array([[1.0], [4.0]]), np.ones(1), 1.0, 3.0).roots()
        (array([ 0., inf]), array([ 0.5, -inf]))

        """
        with np.errstate(divide="ignore", invalid="ignore"):
            A = 2 * (self.gbar2 + self.variance)
            c = self.beta2 - self.gamma**2 * self.gbar2
            discriminant = 4 * self.b * self.b - A * c
            holds = (discriminant >= 0) & (A > 0)
            root = np.sqrt(discriminant)
            return np.where(holds, (2 * self.b - root) / A, np.inf), np.where(holds, (2 * self.b + root) / A, -np.inf)

    def margins(self, steps: Any) -> Array:
        """By how much (9) holds at steps; -inf where it does not.

        Examples
        --------
        >>> BlockTerms.of_blocks(np.array([[1.0], [4.0]]), np.ones(1), 1.0, 0.0).margins(1.0)
        array([  2., -inf])

        """
        held = margin_of(*self, steps)
        return np.where(held >= 0, held, -np.inf)


def admissible_steps(lower: Any, upper: Any, gamma: float, limit: float) -> Array:
    """The longest steps within roots and a limit that exceed gamma; 0 where there are none.

    Examples
    --------
    >>> admissible_steps(np.array([0.0, 0.0, 3.0]), np.array([2.0, 0.5, 4.0]), 1.0, 1.5)
    array([1.5, 0. , 0. ])

    """
    steps = np.minimum(upper, limit)
    return np.where((steps > gamma) & (lower <= limit), steps, 0.0)


#: Above this number of outputs |cos(beta, gbar)| seldom reaches what the check needs: it is applied class by class.
MOST_OUTPUTS = 10


class CDSG(Growth):
    """Reuse the old block where inequality (9) holds by most, else draw a new block.

    Each step has the size of a DSG step. For plain steps, a loss with a bounded derivative and independent blocks, the
    error bound of a reuse is no larger than the bound of a DSG step. With more than 10 outputs, the check runs class by
    class. That is a heuristic without the guarantee of (9). At `max_features` there is no guarantee either, because a
    block is updated even if none passes.

    Parameters
    ----------
    cap
        The longest step of a reused block, in step sizes, at least 1. Defaults to 1. Above 1, CDSG reuses the block
        with the longest step that (9) allows, which is the paper's algorithm 4. Such steps lower the objective faster
        at first, but they are biased, because one mini-batch gives both the gradient and the step size.

    Examples
    --------
    >>> from streamkernel.growth import CDSG
    >>> CDSG(), CDSG(cap=2.0)
    (CDSG(cap=1.0), CDSG(cap=2.0))

    References
    ----------
    [^1]: Li and Poczos, "Utilize old coordinates: faster doubly stochastic gradients for kernel methods", CDSG.

    """

    keeps_beta = True

    def __init__(self, cap: float = 1.0) -> None:
        if cap != np.inf:
            require_number("cap", cap, "a number of at least 1", lambda cap: cap >= 1)
        self.cap = cap

    def choose(self, context: GrowthContext) -> BlockUpdate:
        if context.n_blocks == 0:
            return new_block(context)
        by_class = len(context.mean_gradient) > MOST_OUTPUTS
        with np.errstate(over="ignore", invalid="ignore"):
            if self.cap == 1:
                step = _class_by_class_at_gamma(context) if by_class else _checked_at_gamma(context)
            else:
                step = self._class_by_class(context) if by_class else self._checked(context)
        if step is not None:
            return step
        if not context.full:
            return new_block(context)
        return BlockUpdate(closest(context.beta, context.mean_gradient), context.gamma, context.gamma)

    def _checked(self, context: GrowthContext) -> BlockUpdate | None:
        gamma, longest = context.gamma, self.cap * context.gamma
        terms = BlockTerms.of_blocks(context.beta, context.mean_gradient, gamma, context.variance)
        lower, upper = terms.roots()
        steps = admissible_steps(lower, upper, gamma, longest)
        best, best_step = -1, 0.0
        # The features' limit costs a projection, so it is asked for the best candidates first and as few as need be.
        while steps[k := int(steps.argmax())] > best_step:
            step = float(admissible_steps(lower[k], upper[k], gamma, min(longest, context.limit(k))))
            if step > best_step:
                best, best_step = k, step
            steps[k] = 0.0
        if best < 0:
            return None
        return BlockUpdate(best, best_step, best_step, _margin(terms, best, best_step))

    def _class_by_class(self, context: GrowthContext) -> BlockUpdate | None:
        gamma, magnitude = context.gamma, np.abs(context.mean_gradient)
        terms = BlockTerms.of_classes(context.beta, context.mean_gradient, gamma, context.class_variance)
        steps = admissible_steps(*terms.roots(), gamma, self.cap * gamma)
        best = int(np.argmax(steps @ magnitude))
        passing = steps[best] > 0
        if not passing.any() or magnitude[passing].sum() < PASSING_SHARE * magnitude.sum():
            return None
        held = min(_margin(terms, (best, c), steps[best, c]) for c in np.flatnonzero(passing))
        return BlockUpdate(best, np.where(passing, steps[best], gamma), gamma, held)


def closest(beta: Array, gbar: Array) -> int:
    """The block of the largest <beta, gbar>, where (9) holds of none and none may be made."""
    return int(np.argmax(beta @ gbar))


def _margin(terms: BlockTerms, place: Any, step: float) -> float:
    """The margin of one block or class at a step, which rounding may leave below 0."""
    gbar2 = np.broadcast_to(terms.gbar2, terms.b.shape)[place]
    return float(margin_of(terms.beta2[place], terms.b[place], gbar2, terms.gamma, terms.variance, step))


def _checked_at_gamma(context: GrowthContext) -> BlockUpdate | None:
    """The block where (9) holds by most at gamma, if it holds anywhere and the features of the block allow gamma."""
    gamma = context.gamma
    margins = BlockTerms.of_blocks(context.beta, context.mean_gradient, gamma, context.variance).margins(gamma)
    while (held := margins[k := int(margins.argmax())]) >= 0:
        if context.limit(k) >= gamma:
            return BlockUpdate(k, gamma, gamma, float(held))
        margins[k] = -np.inf
    return None


def _class_by_class_at_gamma(context: GrowthContext) -> BlockUpdate | None:
    """The block whose classes that pass at gamma hold most of the gradient."""
    gamma, magnitude = context.gamma, np.abs(context.mean_gradient)
    margins = BlockTerms.of_classes(context.beta, context.mean_gradient, gamma, context.class_variance).margins(gamma)
    shares = in_order(np.where(margins >= 0, magnitude, 0.0))
    best = int(shares.argmax())
    held = margins[best][margins[best] >= 0]
    if not held.size or shares[best] < PASSING_SHARE * in_order(magnitude):
        return None
    return BlockUpdate(best, gamma, gamma, float(held.min()))
