"""The inputs that a model has learned, compared with those that come."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, cast

from streamkernel.connectors.decode import listed, shown
from streamkernel.connectors.names import nearest
from streamkernel.connectors.ports import Record
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.base.model import Model, is_ours
from streamkernel.daemon.stream.input_names import InputNames
from streamkernel.daemon.stream.loop import Feed
from streamkernel.estimators.base import StreamEstimator

__all__ = ["ADVICE", "ENOUGH", "ComparedFeed", "KnownInputs"]

_log = logging.getLogger(__name__)

ENOUGH = 50
"""After this many records with inputs, the names that came are compared."""

ADVICE = "rename the columns, or set limits.min_known_inputs: null to continue anyway"
"""What to do where the model has learned none of them."""

# At most this number of a model's names is searched for the nearest: each is compared with each.
_MOST_COMPARED = 1000


class KnownInputs:
    """The names of the inputs that a model has learned.

    Parameters
    ----------
    names
        The names; of a model of River's, those of them that are kept.
    all_names
        Of a model of River's, tells whether it was given a name; without room for others. Which of these a step leaves
        out is not known, so that none of them is said to be missing.
    settled
        Whether the model has learned `ENOUGH` records: one that has not may know a part of its inputs.

    Examples
    --------
    >>> known = KnownInputs({"amount", "category"})
    >>> known.difference(["category"])
    "the model's input 'amount' does not arrive and counts as missing"
    >>> known.refusal(["kategorie"], 0.0)
    "the model has learned none of the inputs that arrive ('kategorie'); it knows 'amount', 'category'"

    """

    def __init__(self, names: Iterable[Hashable], all_names: InputNames | None = None, settled: bool = True) -> None:
        self._names = frozenset(names)
        self._all = all_names
        self._settled = settled
        self._n_known = len(self._names) if all_names is None else all_names.n_known

    @classmethod
    def of(cls, model: Model, digests: str = "") -> KnownInputs | None:
        """Return the inputs of a model; None where it has learned nothing, or its inputs cannot be known."""
        if is_ours(model):
            machine = cast("StreamEstimator", model)._machine
            columns, settled = machine.inputs.columns, machine.n_records >= ENOUGH
            return cls([*columns.numbers, *columns.indicators], settled=settled) if len(columns) else None
        names = InputNames(0, digests)  # no room for others
        return cls(names.told, names) if names.n_known else None

    def unknown(self, given: Collection[Any]) -> list[Any]:
        """Return which of some names the model has not learned."""
        if self._all is None:
            return [name for name in given if name not in self._names]
        kept, _ = self._all.bound(dict.fromkeys(given), learn=False)
        return [name for name in given if name not in kept]

    def is_strange(self, record: Collection[Hashable]) -> bool:
        """Return whether one record shows that other inputs come than the model has learned, even if many are absent.

        It has none of the inputs of the model, and as many of its own as all records together had that were learned.
        """
        return self._settled and len(record) >= self._n_known and len(self.unknown(record)) == len(record)

    def is_sparse(self, record: Collection[Hashable]) -> bool:
        """Return whether a record has so few of the inputs, as a text has few words, that it may have none of them."""
        return 4 * len(record) <= self._n_known

    def refusal(self, given: Collection[Hashable], least: float | None) -> str | None:
        """Return why records with these names are not for the model; None where they may be.

        Parameters
        ----------
        given
            The names that came.
        least
            The least share of them that the model must have learned; 0: one of them; None: none.

        """
        if least is None or not given or (least == 0 and not self._names.isdisjoint(given)):
            return None
        unknown = self.unknown(given)
        if len(unknown) == len(given):
            learned = f"; it knows {listed(sorted(self._names, key=str))}" if self._names else ""
            return f"the model has learned none of the inputs that arrive ({listed(unknown)}){learned}"
        if len(given) - len(unknown) < least * len(given):
            return (
                f"the model has not learned {len(unknown)} of the {len(given)} inputs that arrive: "
                f"{self._with_nearest(unknown, given)}"
            )
        return None

    def lacks(self, record: Collection[Hashable]) -> bool:
        """Return whether a record has no value for an input of the model, where the names of all are kept."""
        return self._all is None and not self._names.issubset(record)

    def difference(self, given: Collection[Hashable], empty: Collection[str] = ()) -> str | None:
        """Return which names the model has not learned, and which of its inputs do not arrive; None where all agree.

        Columns that arrive without a value, as empty cells do, are in `empty`. A date there means all its parts.
        """
        unknown = self.unknown(given)
        phrases = [f"the model has not learned {self._with_nearest(unknown, given)}"] if unknown else []
        if self._all is None and (absent := self._absent(given, empty)):
            whose = "its" if phrases else "the model's"
            inputs, do = ("input", "does") if len(absent) == 1 else ("inputs", "do")
            count = "counts" if len(absent) == 1 else "count"
            phrases.append(f"{whose} {inputs} {listed(absent)} {do} not arrive and {count} as missing")
        return ", and ".join(phrases) or None

    def _absent(self, given: Collection[Hashable], empty: Collection[str]) -> list[Hashable]:
        absent = sorted(self._names.difference(given, empty), key=str)
        return [name for name in absent if not any(above in empty for above in _above(name))]

    def _with_nearest(self, unknown: Sequence[Hashable], given: Collection[Hashable]) -> str:
        """List unknown names, each with the nearest name of the model that does not come."""
        absent = sorted(name for name in self._names.difference(given) if isinstance(name, str))[:_MOST_COMPARED]

        def phrase(name: Hashable) -> str:
            near = nearest(name, absent) if isinstance(name, str) else None
            return shown(name) + (f" (did you mean {shown(near)}?)" if near is not None else "")

        return listed(unknown, phrase)


def _above(name: Hashable) -> Iterator[str]:
    """Yield the columns that an input may be a part of: of ``when.day.sin`` those are ``when.day`` and ``when``."""
    parent = name if isinstance(name, str) else ""
    while parent := parent.rpartition(".")[0]:
        yield parent


class ComparedFeed(Feed):
    """A feed whose first records are compared with the inputs of a model that has learned before.

    Parameters
    ----------
    feed
        The feed.
    known
        The inputs of the model; None: nothing is compared.
    least
        As `KnownInputs.refusal` has it.
    ignored
        Names that are no inputs, such as the key of late labels.
    place, advice
        What to call the feed in an error, and what to do.
    tell
        Called with what differs; by default it is logged.
    empty
        Returns the columns of a record that are inputs without a value.

    """

    def __init__(
        self,
        feed: Feed,
        known: KnownInputs | None,
        least: float | None,
        ignored: Collection[str | None] = (),
        place: str = "source",
        advice: str = ADVICE,
        tell: Callable[[str], None] = _log.warning,
        empty: Callable[[Record], Collection[str]] = lambda _: (),
    ) -> None:
        self._feed = feed
        self._known = known
        self._least = least
        self._ignored = ignored
        self._place = place
        self._advice = advice
        self._tell = tell
        self._empty = empty
        self._empty_names: set[str] = set()
        self._names: dict[Hashable, None] = {}
        self._n_records = 0
        self._are_sparse = True

    @property
    def exhausted(self) -> bool:
        return self._feed.exhausted

    def poll(self, max_records: int, timeout: float) -> Sequence[Record]:
        """Hand out the next records.

        Raises
        ------
        DaemonError
            Where the model has learned too few of the inputs of the first records.

        """
        records = self._feed.poll(max_records, timeout)
        if self._known is not None:
            self._take(self._known, records, full=len(records) == max_records)
        return records

    def _take(self, known: KnownInputs, records: Sequence[Record], full: bool) -> None:
        """Compare as soon as there is enough: before the first record is predicted, where that is possible."""
        taken = [one for one in records if one.x and not isinstance(one, LabelRecord)]
        given = [[name for name in one.x if name not in self._ignored] for one in taken]
        self._empty_names.update(*(self._empty(one) for one in taken[:ENOUGH] if known.lacks(one.x)))
        self._n_records += len(given)
        self._names.update(dict.fromkeys(chain.from_iterable(given)))
        names = list(self._names)
        self._are_sparse = self._are_sparse and all(map(known.is_sparse, given))
        too_few = self._are_sparse and self._n_records < ENOUGH
        strange = any(map(known.is_strange, given)) and len(known.unknown(names)) == len(names)
        enough = (full and not too_few) or self._n_records >= ENOUGH or (strange and self._least is not None)
        if not names or not (enough or self._feed.exhausted):
            return
        self._known = None
        if not too_few and (why := known.refusal(names, self._least)) is not None:
            raise DaemonError(f"{self._place}: {why}: {self._advice}")
        if (difference := known.difference(names, self._empty_names)) is not None:
            self._tell(f"{self._place}: {difference} (in the first {self._n_records} records)")
