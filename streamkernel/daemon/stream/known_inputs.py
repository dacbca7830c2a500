"""The inputs that a model has learnt, compared with those that come."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, cast

from connectors.ports import Record
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

ADVICE = "rename the columns, or set limits.min_known_inputs: null to go on all the same"
"""What to do where the model has learnt none of them."""

_MOST_SHOWN = 10
# Difflib compares each name with each.
_MOST_COMPARED = 1000


class KnownInputs:
    """The names of the inputs that a model has learnt.

    Parameters
    ----------
    names
        The names; of a model of River's none, because only their digests are kept.
    digests
        Those digests, as `InputNames.to_text` gives them.

    Examples
    --------
    >>> known = KnownInputs({"amount", "category"})
    >>> known.difference(["amuont", "category"])
    "the model has not learnt 'amuont' (do you mean 'amount'?), and its input 'amount' does not come"
    >>> known.refusal(["kategorie"], 0.0)
    "the model has learnt none of the inputs that come ('kategorie'), but 'amount', 'category'"

    """

    def __init__(self, names: Iterable[Hashable], digests: str = "") -> None:
        self._names = frozenset(names)
        self._digests = InputNames(0, digests) if digests else None  # no room for others

    @classmethod
    def of(cls, model: Model, digests: str = "") -> KnownInputs | None:
        """Return the inputs of a model; None where it has learnt nothing, or its inputs cannot be known."""
        if is_ours(model):
            columns = cast("StreamEstimator", model)._machine.inputs.columns
            return cls([*columns.numbers, *columns.indicators]) if len(columns) else None
        return cls((), digests) if digests else None

    def unknown(self, given: Collection[Any]) -> list[Any]:
        """Return which of some names the model has not learnt."""
        if self._digests is None:
            return [name for name in given if name not in self._names]
        kept, _ = self._digests.bound(dict.fromkeys(given), learn=False)
        return [name for name in given if name not in kept]

    def refusal(self, given: Collection[Hashable], least: float | None) -> str | None:
        """Return why records with these names are not for the model; None where they may be.

        Parameters
        ----------
        given
            The names that came.
        least
            The least share of them that the model must have learnt; 0: one of them; None: none.

        """
        if least is None or not given or (least == 0 and not self._names.isdisjoint(given)):
            return None
        unknown = self.unknown(given)
        if len(unknown) == len(given):
            learnt = f", but {_listed(sorted(self._names, key=str))}" if self._names else ""
            return f"the model has learnt none of the inputs that come ({_listed(unknown)}){learnt}"
        if len(given) - len(unknown) < least * len(given):
            return (
                f"the model has not learnt {len(unknown)} of the {len(given)} inputs that come: "
                f"{self._with_nearest(unknown, given)}"
            )
        return None

    def difference(self, given: Collection[Hashable]) -> str | None:
        """Return which names the model has not learnt, and which of its inputs do not come; None where all agree."""
        unknown = self.unknown(given)
        phrases = [f"the model has not learnt {self._with_nearest(unknown, given)}"] if unknown else []
        if absent := sorted(self._names.difference(given), key=str):
            whose = "its" if phrases else "the model's"
            inputs, do = ("input", "does") if len(absent) == 1 else ("inputs", "do")
            phrases.append(f"{whose} {inputs} {_listed(absent)} {do} not come")
        return ", and ".join(phrases) or None

    def _with_nearest(self, unknown: Collection[Hashable], given: Collection[Hashable]) -> str:
        """List unknown names, each with the nearest name of the model that does not come."""
        absent = [name for name in self._names.difference(given) if isinstance(name, str)][:_MOST_COMPARED]
        listed = []
        for name in list(unknown)[:_MOST_SHOWN]:
            near = difflib.get_close_matches(name, absent, n=1) if isinstance(name, str) else []
            listed.append(f"{name!r:.80}" + (f" (do you mean {near[0]!r:.80}?)" if near else ""))
        return ", ".join(listed) + _rest(len(unknown))


class ComparedFeed(Feed):
    """A feed whose first records are compared with the inputs of a model that has learnt before.

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
    ) -> None:
        self._feed = feed
        self._known = known
        self._least = least
        self._ignored = ignored
        self._place = place
        self._advice = advice
        self._tell = tell
        self._names: dict[Hashable, None] = {}
        self._n_records = 0

    @property
    def exhausted(self) -> bool:
        return self._feed.exhausted

    def poll(self, max_records: int, timeout: float) -> list[Record]:
        """Hand out the next records.

        Raises
        ------
        DaemonError
            Where the model has learnt too few of the inputs of the first records.

        """
        records = self._feed.poll(max_records, timeout)
        if self._known is not None:
            self._take(self._known, records, full=len(records) == max_records)
        return records

    def _take(self, known: KnownInputs, records: list[Record], full: bool) -> None:
        """Compare as soon as there is enough: before the first record is predicted, where there are more behind it."""
        xs: list[Mapping[str, Any]] = [one.x for one in records if one.x and not isinstance(one, LabelRecord)]
        self._n_records += len(xs)
        for x in xs:
            self._names.update(dict.fromkeys(x))
        if not self._names or not (full or self._n_records >= ENOUGH or self._feed.exhausted):
            return
        self._known = None
        names = [name for name in self._names if name not in self._ignored]
        if (why := known.refusal(names, self._least)) is not None:
            raise DaemonError(f"{self._place}: {why}: {self._advice}")
        if (difference := known.difference(names)) is not None:
            self._tell(f"{self._place}: {difference} (in the first {self._n_records} records)")


def _listed(names: Collection[Hashable]) -> str:
    return ", ".join(f"{name!r:.80}" for name in list(names)[:_MOST_SHOWN]) + _rest(len(names))


def _rest(n_names: int) -> str:
    return f" and {n_names - _MOST_SHOWN} more" if n_names > _MOST_SHOWN else ""
