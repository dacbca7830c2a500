"""The vocabulary of a batch: the inputs, values and labels that its rows bring and a model does not know yet.

Vocabularies of parts of a batch merge in any order, and new columns and labels are added in the order of their keys:
however the rows are parted, the model comes to know the same.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamkernel.records.classes import Classes, TwoSides
from streamkernel.records.frames import FrameColumns
from streamkernel.records.inputs import Inputs
from streamkernel.records.targets import Targets
from streamkernel.state import key_of, tag, untag

_WithLabels = Classes | TwoSides


@dataclass
class TextCounts:
    """The learned values of one string input.

    - n_known, n_unknown: Rows with a value that has an indicator, and without one.
    - values: Distinct values without an indicator, of many those with the smallest keys.
    """

    n_known: int = 0
    n_unknown: int = 0
    values: set[str] = field(default_factory=set)


@dataclass
class Vocabulary:
    """What the learned rows of a batch bring.

    - numbers: Rows with each number that has no column, by its name.
    - texts: The values of each string input, by its name.
    - labels: Labels that are not known, of many those whose tags come first.
    - n_unknown_labels: Rows with such a label.
    """

    numbers: dict[Hashable, int] = field(default_factory=dict)
    texts: dict[Hashable, TextCounts] = field(default_factory=dict)
    labels: set[Hashable] = field(default_factory=set)
    n_unknown_labels: int = 0

    def merge(self, other: "Vocabulary", inputs: Inputs, targets: Targets) -> None:
        """Take in the vocabulary of other rows."""
        for name, n in other.numbers.items():
            self.numbers[name] = self.numbers.get(name, 0) + n
        for name, theirs in other.texts.items():
            own = self.texts.setdefault(name, TextCounts())
            own.n_known += theirs.n_known
            own.n_unknown += theirs.n_unknown
            own.values = _fewest_values(name, own.values | theirs.values, inputs.max_inputs)
        self.labels = _fewest_labels(_first_of_equals([*self.labels, *other.labels]), targets)
        self.n_unknown_labels += other.n_unknown_labels


def vocabulary(inputs: Inputs, targets: Targets, columns: FrameColumns, ys: list[Any]) -> Vocabulary:
    """The vocabulary of the rows of a frame.

    - inputs, targets: Those of a model, which are not changed.
    - columns: The contents of the frame.
    - ys: Targets as plain values; a row whose target is None brings nothing.
    """
    found = Vocabulary()
    learned = np.array([y is not None for y in ys], np.bool_)
    if isinstance(targets, _WithLabels):
        unknown = unknown_labels(targets, ys)
        found.labels = _fewest_labels(unknown, targets)
        found.n_unknown_labels = sum(y in unknown for y in ys) if unknown else 0
        if unknown and _room_for_labels(targets) == 0:  # such rows are predicted only
            learned = np.array([y is not None and y not in unknown for y in ys], np.bool_)
    for j, name in enumerate(columns.names):
        if name not in inputs.columns.numbers and (n := int((~np.isnan(columns.numbers[learned, j])).sum())):
            found.numbers[name] = n
    for text in columns.texts:
        codes = text.codes[learned]
        counts = np.bincount(codes[codes >= 0], minlength=len(text.values))
        known = inputs.columns.indicators.get(text.name, {})
        is_known = np.array([value in known for value in text.values], np.bool_)
        new = {text.values[code] for code in np.flatnonzero((counts > 0) & ~is_known).tolist()}
        new = _fewest_values(text.name, new, inputs.max_inputs)
        found.texts[text.name] = TextCounts(int(counts[is_known].sum()), int(counts[~is_known].sum()), new)
    return found


def unknown_labels(targets: _WithLabels, ys: Sequence[Any]) -> set[Hashable]:
    """The labels among plain values, None left out, that have no column or side."""
    known = known_labels(targets)
    if len(set(map(type, ys)) - {type(None)}) <= 1:
        return {y for y in set(ys) if y is not None and y not in known}
    return _first_of_equals(y for _, y in {(type(y), y) for y in ys} if y is not None and y not in known)


def known_labels(targets: _WithLabels) -> dict[Hashable, float]:
    """The column or side of each label that was seen."""
    if isinstance(targets, TwoSides):
        return {label: float(side) for side, label in enumerate(targets.labels) if targets.seen[side]}
    return {label: float(column) for column, label in enumerate(targets.labels)}


def admissible(inputs: Inputs, targets: Targets, found: Vocabulary) -> tuple[list[list[Any]], list[Hashable]]:
    """The columns and labels of a vocabulary that there is room for, each in the order of their keys.

    Of two inputs of one key the first by name has it, and one whose key another input has is ignored. How many values
    of a string input there is room for depends on its repetitions before the batch.
    """
    columns: list[list[Any]] = []
    n_values = {name: len(inputs.columns.indicators.get(name, ())) for name in found.texts}
    for _, tagged, _ in inputs.columns.arrivals((tagged, 0.0) for tagged in _tagged(found)):
        if len(columns) == inputs.room:
            break
        if tagged[0] == "indicator":
            name = untag(tagged[1])
            if not inputs.repeats.has_room(name, n_values[name]):
                continue
            n_values[name] += 1
        columns.append(tagged)
    labels = sorted(found.labels, key=lambda label: repr(tag(label)))
    return columns, labels[: _room_for_labels(targets)]


def count_vocabulary(inputs: Inputs, targets: Targets, found: Vocabulary, columns: list[list[Any]]) -> None:
    """Count repetitions, and the inputs and labels of a batch that there was no room for.

    - inputs, targets: Those of a model, with what was admissible of the batch.
    - found: What of its vocabulary they do not know, and how often they know the rest.
    - columns: Those that came with the batch: a value is no repetition where it brings its own.
    """
    inputs.n_ignored += sum(found.numbers.values())
    n_new = Counter(untag(tagged[1]) for tagged in columns if tagged[0] == "indicator")
    for name, text in found.texts.items():
        values = inputs.columns.indicators.get(name, ())
        # By the repetitions before the batch, as what is admissible.
        if text.n_unknown and inputs.repeats.has_room(name, len(values)):
            inputs.n_ignored += text.n_unknown
        elif text.n_unknown:
            inputs.repeats.note_without(name, values, text.n_unknown)
        if text.n_known > n_new[name]:
            inputs.repeats.add(name, text.n_known - n_new[name])
    if found.n_unknown_labels:
        targets.n_limited += found.n_unknown_labels


def _room_for_labels(targets: Targets) -> int | None:
    """How many more labels there may be; None of two sides, of which a third is refused."""
    return max(targets.max_classes - len(targets.labels), 0) if isinstance(targets, Classes) else None


def _tagged(found: Vocabulary) -> Iterable[list[Any]]:
    for name in found.numbers:
        yield ["number", tag(name)]
    for name, text in found.texts.items():
        for value in text.values:
            yield ["indicator", tag(name), value]


def _fewest_values(name: Hashable, values: set[str], most: int) -> set[str]:
    if len(values) <= most:
        return values
    return set(sorted(values, key=lambda value: key_of(["indicator", tag(name), value]))[:most])


def _first_of_equals(labels: Iterable[Hashable]) -> set[Hashable]:
    """Labels of which none equals another; of 1, 1.0 and True that whose tag comes first, whichever row did."""
    kept: dict[Hashable, Hashable] = {}
    for label in labels:
        if label not in kept or repr(tag(label)) < repr(tag(kept[label])):
            kept[label] = label
    return set(kept.values())


def _fewest_labels(labels: set[Hashable], targets: Targets) -> set[Hashable]:
    most = targets.max_classes if isinstance(targets, Classes) else 3  # of two sides a third is refused
    return labels if len(labels) <= most else set(sorted(labels, key=lambda label: repr(tag(label)))[:most])
