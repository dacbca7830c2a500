"""Amounts by name as shares of their sum, the largest first."""

from collections.abc import Iterable

__all__ = ["shares_of"]


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
