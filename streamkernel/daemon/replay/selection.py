"""Selects the dead letters of a file that are to be replayed into a checkpoint: those of its run, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.sources import is_several
from streamkernel.daemon.replay.letters import DeadLetter, read_letters
from streamkernel.daemon.replay.report import ReplayReport
from streamkernel.daemon.replay.sources import SECTIONS
from streamkernel.daemon.run_state.replayed import MOST_REPLAYED, LetterPlace
from streamkernel.daemon.run_state.start import Start

__all__ = ["LetterSelection"]


@dataclass
class LetterSelection:
    """The letters of a file that are to be replayed, and those that are not.

    Parameters
    ----------
    plan, start
        The configuration, and the checkpoint they are replayed into.
    path
        The file.
    partition
        The one whose letters are looked at; None: those of all.

    """

    plan: Plan
    start: Start
    path: Path
    partition: int | None = None

    def count(self, report: ReplayReport) -> Counter[str]:
        """Count the letters by their source that are to be replayed, and report the others.

        Raises
        ------
        DaemonError
            Where they are not of this checkpoint, or too many to be kept in it.

        """
        wanted: Counter[str] = Counter()
        for letter, new in self._letters():
            place = letter.place
            if new:
                wanted[place.source] += 1
            elif place in self.start.replayed:
                report.n_before += 1
            elif self._is_ahead(place):
                report.n_ahead += 1
            if wanted.total() + len(self.start.replayed) > MOST_REPLAYED:
                raise DaemonError(
                    f"{self.path}: a checkpoint stores at most {MOST_REPLAYED:,} replayed letters, and "
                    f"{len(self.start.replayed):,} are there: fix the configuration and start over with "
                    "streamkernel run --fresh"
                )
        join = self.start.join
        dead = {"records": self.start.counts.dead, "labels": 0 if join is None else join.counts.dead}
        for source, number in wanted.items():
            if number > dead[source]:
                raise DaemonError(
                    f"{self.path}: holds {number:,} letters of {source} that were not replayed, and the checkpoint "
                    f"counts {dead[source]:,}: the file is from another run. Use the file of the run in "
                    f"{self.plan.raw['checkpoint']['directory']}"
                )
        return wanted

    def wanted(self) -> Iterator[DeadLetter]:
        """Yield the letters that are to be replayed."""
        return (letter for letter, new in self._letters() if new)

    def _letters(self) -> Iterator[tuple[DeadLetter, bool]]:
        """Yield each letter, and whether to replay it: not if it was replayed before, or comes a second time."""
        limit = self.plan.config.limits.max_record_bytes
        taken: set[LetterPlace] = set()
        for letter in read_letters(self.path, limit, self._repeats):
            place = letter.place
            if self.partition not in (None, place.partition):
                continue
            new = place not in self.start.replayed and place not in taken and not self._is_ahead(place)
            if new:
                taken.add(place)
            yield letter, new

    def _repeats(self, source: str) -> bool:
        """Return whether the offsets of a source start over: of a file that is rotated, or a pipe."""
        written = self.plan.config.sources.get(SECTIONS[source])
        return getattr(written, "follow", False) or str(getattr(written, "path", "")) == "-"

    def _is_ahead(self, place: LetterPlace) -> bool:
        """Return whether the daemon has yet to read a record, or reads it again."""
        join = self.start.join
        positions = self.start.positions if place.source == "records" else {} if join is None else join.positions
        if positions and is_several(self.plan.config.sources[SECTIONS[place.source]]):
            # Partitions are files, one after the other, and only that of the last is known.
            last = positions[max(positions)]
            return (place.partition, place.offset) >= (last.partition, last.offset)
        here = positions.get(place.partition)
        return here is None or (place.offset >= here.offset and not self._repeats(place.source))
