"""Shapley values: the contribution of each input to one prediction."""

import abc
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from streamkernel.arguments import require_whole
from streamkernel.compute.gaussians import feature_words, mix64
from streamkernel.state import Array, excerpt, key_of, real, tag


def shares_of(amounts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return amounts from 0 up as shares of 1, the largest first; none where their sum is 0.

    Amounts of the same name add up.

    Examples
    --------
    >>> shares_of([("a", 1.0), ("b", 4.0), ("a", 3.0), ("c", 8.0)]), shares_of([("a", 0.0)])
    ({'c': 0.5, 'a': 0.25, 'b': 0.25}, {})

    """
    by_name: dict[str, float] = {}
    for name, amount in amounts:
        by_name[name] = by_name.get(name, 0.0) + amount
    total = sum(by_name.values())
    ranked = sorted(by_name.items(), key=lambda item: -item[1])
    return {name: amount / total for name, amount in ranked} if total > 0 else {}


#: Inputs up to which every subset is looked at: 256 predictions.
MOST_EXACT = 8

#: A record, or what is left of it.
_Record = Mapping[Any, Any]


class _Explainer:
    """Explains predictions."""

    #: An estimator's: all predictions for one explanation are of one moment.
    _lock: Any

    def _left_in(self, x: _Record) -> dict[Any, Any]:  # noqa: ARG002
        """What stays in a record whose inputs are left out, not observed."""
        return {}

    def _shares(
        self, x: _Record, predict: Callable[[Sequence[_Record]], Array], n_permutations: int
    ) -> dict[Hashable, float]:
        rest = self._left_in(x)
        return shapley_values(x, lambda xs: predict([{**rest, **some} for some in xs] if rest else xs), n_permutations)


class NumberExplainer(_Explainer, abc.ABC):
    """Explains the predictions of a regressor."""

    @abc.abstractmethod
    def _predicted_numbers(self, xs: Sequence[_Record]) -> Array:
        """The predictions of n records, shape (n,)."""

    def explain_one(self, x: dict[Any, Any], n_permutations: int = 16) -> dict[Any, float]:
        """Return the contribution of each input to the prediction of one record: its Shapley value.

        The reference is a record without inputs, where each number counts as its mean (0 if inputs are not
        standardized). Except for rounding, the contributions add up to `predict_one(x)` less `predict_one({})`. The
        model learns nothing.

        Parameters
        ----------
        x
            Inputs by name.
        n_permutations
            The number of orders to average over if x has more than 8 inputs, with as many predictions for each input.
            Up to 8 inputs, all orders count. Defaults to 16.

        Returns
        -------
        A number for each input of x, in units of the target. 0 for a missing input.

        Examples
        --------
        >>> from streamkernel import AdaptiveKernelRegressor
        >>> model = AdaptiveKernelRegressor(seed=1)
        >>> for i in range(200):
        ...     model.learn_one({"a": i % 10, "b": i % 7}, 2.0 * (i % 10))
        >>> {name: round(share) for name, share in model.explain_one({"a": 9, "b": 3}).items()}
        {'a': 9, 'b': 0}
        """
        require_whole("n_permutations", n_permutations)
        with self._lock:
            return self._shares(x, self._predicted_numbers, int(n_permutations))


class LabelExplainer(_Explainer, abc.ABC):
    """Explains the probabilities of a classifier."""

    @abc.abstractmethod
    def _predicted_probabilities(self, xs: Sequence[_Record]) -> tuple[list[Any], Array]:
        """The labels known so far, K of them, and the probabilities of n records, shape (n, K)."""

    def explain_one(self, x: dict[Any, Any], label: Any = None, n_permutations: int = 16) -> dict[Any, float]:
        """Return the contribution of each input to the probability of a label, for one record: its Shapley value.

        As for a regressor, the contributions add up to the label's `predict_proba_one(x)` less its
        `predict_proba_one({})`, except for rounding.

        Parameters
        ----------
        x, n_permutations
            As in `AdaptiveKernelRegressor.explain_one`.
        label
            The label to explain. None (the default) is the most probable label of x.

        Returns
        -------
        A number for each input of x, from -1 to 1. 0 for a missing input, and before the first label.

        Raises
        ------
        ValueError
            The model has not seen the label.

        Examples
        --------
        >>> from streamkernel import AdaptiveKernelClassifier
        >>> model = AdaptiveKernelClassifier(seed=1)
        >>> for i in range(200):
        ...     model.learn_one({"a": i % 10, "b": i % 7}, i % 10 > 4)
        >>> shares = model.explain_one({"a": 9, "b": 3}, label=True)
        >>> max(shares, key=shares.get), round(sum(shares.values()), 1)
        ('a', 0.7)

        """
        require_whole("n_permutations", n_permutations)
        with self._lock:
            labels, probabilities = self._predicted_probabilities([x])
            if label is None:
                column = int(probabilities[0].argmax()) if labels else -1
            elif label in labels:
                column = labels.index(label)
            else:
                some = ", ".join(map(repr, labels[:10])) + (", ..." if len(labels) > 10 else "")
                raise ValueError(
                    f"label {excerpt(label)} was not seen yet: use one of {some}, or None for the predicted one"
                )
            if column < 0:
                return dict.fromkeys(x, 0.0)
            return self._shares(x, lambda xs: self._predicted_probabilities(xs)[1][:, column], int(n_permutations))


def shapley_values(
    x: _Record, predict: Callable[[Sequence[_Record]], Array], n_permutations: int
) -> dict[Hashable, float]:
    """Return the Shapley value of each input of a record, against a record without inputs.

    This is the change of a prediction when the input becomes known, averaged over the orders of the inputs. A missing
    input is left out of the record. For a number, that means its mean.

    - x: Inputs by name.
    - predict: A function that returns the predictions of n records, float64 of shape (n,).
    - n_permutations: The number of orders to average over, each followed by its reverse, with more than `MOST_EXACT`
      known inputs. With fewer inputs, all orders count. The names of the inputs determine the orders.

    Returns a number for each name in x, 0 for a missing input. Except for rounding, they add up to the prediction of x
    less the prediction of a record without inputs.

    References
    ----------
    [^1]: Strumbelj and Kononenko, "An efficient explanation of individual classifications using game theory", 2010.
    [^2]: Mitchell et al., "Sampling permutations for Shapley value estimation", 2022, section 4: reversed permutations.
    [^3]: Covert, Lundberg and Lee, "Explaining by removing", 2021: what removing an input means.

    """
    observed = {name: value for name, value in x.items() if _is_observed(value)}
    # By key: neither the order in the record nor the machine decides.
    names = sorted(observed, key=lambda name: key_of(["number", tag(name)]))

    def values(subsets: Sequence[Array]) -> Array:
        """The predictions of subsets of the observed inputs, each given by its indexes."""
        return predict([{names[i]: observed[names[i]] for i in subset.tolist()} for subset in subsets])

    exact = len(names) <= MOST_EXACT
    shares = _exact(len(names), values) if exact else _sampled(names, values, n_permutations)
    return {**dict.fromkeys(x, 0.0), **dict(zip(names, shares.tolist(), strict=True))}


def _exact(n: int, values: Callable[[Sequence[Array]], Array]) -> Array:
    """The weighted mean over all subsets without an input: |S|! (n - |S| - 1)! / n! each."""
    codes = np.arange(2**n)
    bits = (codes[:, None] >> np.arange(n)) & 1
    v = values([np.flatnonzero(row) for row in bits])
    sizes = bits.sum(axis=1)
    weights = np.array([1 / (n * math.comb(n - 1, size)) if size < n else 0.0 for size in sizes])
    shares = np.zeros(n)
    for i in range(n):
        without = codes[bits[:, i] == 0]
        shares[i] = float(weights[without] @ (v[without | (1 << i)] - v[without]))
    return shares


def _sampled(names: Sequence[Hashable], values: Callable[[Sequence[Array]], Array], n_permutations: int) -> Array:
    """The mean over some orders of what each input adds to those before it."""
    n = len(names)
    shares = np.zeros(n)
    ends = values([np.arange(0), np.arange(n)])
    for order in _permutations(names, n_permutations):
        v = np.concatenate([ends[:1], values([order[:k] for k in range(1, n)]), ends[1:]])
        shares[order] += np.diff(v)
    return shares / n_permutations


def _permutations(names: Sequence[Hashable], n: int) -> list[Array]:
    """n orders of names, each second the reverse of the one before: by words of the names, as if at random."""
    words = np.empty(n, np.uint64)
    feature_words(np.uint64(0), 0, words)
    keys = [np.uint64(key_of(["number", tag(name)])) for name in names]
    orders = [np.argsort(np.array([mix64(key ^ word) for key in keys], np.uint64)) for word in words[::2]]
    return [order[:: 1 if k % 2 == 0 else -1] for order in orders for k in range(2)][:n]


def _is_observed(value: Any) -> bool:
    if value is None:
        return False
    number = real(value)
    return number is None or not math.isnan(number)
