"""How much each input matters to a growing machine: a derivative-based global sensitivity measure."""

import numpy as np

from streamkernel.compute.gaussians import feature_words, gaussians, mix64, random_signs
from streamkernel.compute.moments import M2
from streamkernel.expansion.expansion import Expansion
from streamkernel.expansion.gradients import gradients
from streamkernel.records.input_scaler import SCALED_LIMIT
from streamkernel.records.inputs import Inputs
from streamkernel.state import Array

#: Points at which slopes are taken.
N_POINTS = 256
#: Outputs whose slopes are taken; where there are more, random sums of them.
WATCHED = 32
#: How far from the edge of a domain a point is at least.
_EDGE = 1e-3
#: Slopes kept at a time: 32 MB.
_CELLS = 2**22
#: The stream of the points, which are the same for every model; frequencies are of the streams of seeds.
_STREAM = np.uint64(0x706F696E7473)


def sensitivities(expansion: Expansion, inputs: Inputs) -> Array:
    """The mean squared slope of the scores along each input, times the input's variance.

    That bounds the input's total Sobol index, its share in the variance of the scores with all its interactions. Inputs
    are taken to be independent: numbers, as the kernel sees them, standard normal (one that never varied is constant),
    and of a string each of its values, or none, as likely.

    Parameters
    ----------
    expansion
        With at least one block.
    inputs
        d of them.

    Returns
    -------
    float64 of shape (d,).

    References
    ----------
    [^1]: Sobol and Kucherenko, "Derivative based global sensitivity measures and their link with global sensitivity
          indices", 2009.

    """
    X, variances = points(inputs)
    domain = expansion.kernel.domain
    if domain is not None:
        # Numbers that are not standardised: mirrored into the kernel's domain.
        numbers = np.array([column[0] == "number" for column in inputs.columns])
        X[:, numbers] = domain.least + np.maximum(np.abs(X[:, numbers] - domain.least), _EDGE)
        variances[numbers] = X[:, numbers].var(axis=0)
    outputs = None
    if expansion.n_outputs > WATCHED:
        # The mean square of random sums of outputs is the sum of their squares.
        outputs = random_signs(np.uint64(expansion.n_outputs), WATCHED, expansion.n_outputs) / np.sqrt(WATCHED)
    step = max(_CELLS // max(min(expansion.n_outputs, WATCHED) * X.shape[1], 1), 1)
    squares = np.zeros(X.shape[1])
    for start in range(0, len(X), step):
        slopes = gradients(expansion, X[start : start + step], inputs.columns.keys, outputs)
        squares += np.einsum("knd,knd->d", slopes, slopes)
    return variances * squares / len(X)


def points(inputs: Inputs) -> tuple[Array, Array]:
    """Scaled rows drawn from independent inputs, a function of their names; and the variance of each input.

    Returns
    -------
    Shapes (`N_POINTS`, d) and (d,), float64.

    """
    words = np.empty(N_POINTS, np.uint64)
    feature_words(_STREAM, 0, words)
    drawn = np.empty((len(inputs), N_POINTS), np.float64)
    gaussians(words, inputs.columns.keys, 1.0, drawn)
    X, variances = np.clip(drawn.T, -SCALED_LIMIT, SCALED_LIMIT), np.ones(len(inputs))
    if inputs.standardize:
        constant = inputs.scaler.moments[:, M2] == 0
        X[:, constant], variances[constant] = 0.0, 0.0
    for columns in _strings(inputs):
        mixed = np.array([mix64(word ^ inputs.columns.keys[columns[0]]) for word in words], np.uint64)
        chosen = mixed % np.uint64(len(columns) + 1)
        X[:, columns] = chosen[:, None] == np.arange(len(columns), dtype=np.uint64)
        share = 1 / (len(columns) + 1)
        variances[columns] = share * (1 - share)
    return X, variances


def _strings(inputs: Inputs) -> list[list[int]]:
    """The columns of the values of each string input."""
    by_name: dict[str, list[int]] = {}
    for column, tagged in enumerate(inputs.columns):
        if tagged[0] == "indicator":
            by_name.setdefault(repr(tagged[1]), []).append(column)
    return list(by_name.values())
