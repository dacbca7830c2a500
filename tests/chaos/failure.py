"""What may go wrong, by name: the list of everything the harness knows to inject."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.chaos.account import Findings
from tests.chaos.settings import Setting
from tests.chaos.site import Site
from tests.chaos.trial import Trial

Inject: TypeAlias = Callable[[Trial], int]
"""Does the harm, and tells how many times it did."""


@dataclass(frozen=True)
class Failure:
    """A way to fail."""

    name: str
    says: str  #: a pattern: the line of the log that tells an operator
    inject: Inject
    settings: Sequence[Setting]  #: the first one in the short form
    trial: dict[str, Any] = field(default_factory=dict)  #: how its trials are made
    death: bool = False  #: whether the process dies at a known place: then at several of them in one trial
    short: bool = True  #: whether there is a short form


FAILURES: list[Failure] = []
"""What was added by now; `tests.chaos.failures.ALL` is all there is."""


def failure(
    name: str, says: str, *settings: Setting, death: bool = False, short: bool = True, **trial: Any
) -> Callable[[Inject], Inject]:
    """Add a way to fail to the list; see `Failure`."""

    def add(inject: Inject) -> Inject:
        FAILURES.append(Failure(name, says, inject, settings, trial, death, short))
        return inject

    return add


@dataclass
class Outcome:
    """What became of a trial: how many times the harm was done, and the account."""

    times: int
    findings: Findings


def run(
    site: Site, failures: Sequence[Failure], setting: Setting, seed: int = 0, number: int = 0, long: bool = False
) -> Outcome:
    """Make a trial of a failure, or of several one after the other, and leave the site well."""
    draw = random.Random(f"{seed} {failures[0].name} {setting.name} {number}")
    with Trial(site, setting, draw, long=long, **failures[0].trial) as trial:
        times = sum(failure.inject(trial) for failure in failures)
        trial.finish()
        return Outcome(times, trial.findings([failure.says for failure in failures]))
