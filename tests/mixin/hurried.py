"""The rules of the mixin with time that runs faster, so that real faults need not last for half an hour."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from pathlib import Path

from configs.mixin.render import rendered
from configs.mixin.settings import AlertBounds, MixinSettings
from tests.mixin.scraping import rules

FACTOR = 200
SECONDS = 120
# Ages, which grow with the time that passes; what a label, a line or a request takes stays as it is.
HURRIED_BOUNDS = {
    name: float(getattr(AlertBounds(), name)) for name in ("stuck_seconds", "silent_seconds", "checkpoint_seconds")
}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def _shorter(text: str) -> str:
    """Shorten every duration of an expression, or of how long it has to hold."""
    return re.sub(
        r"(?<=[\[ ])(\d+)([smhdw])(?=[\])]|$)",
        lambda found: f"{int(found[1]) * _UNITS[found[2]] * 1000 // FACTOR}ms",
        text,
    )


def hurried_rules(folder: Path) -> list[Path]:
    """Write the rules as they are but for the time, which runs faster, in ranges, holds and bounds of seconds alike."""
    seconds = {name: bound / FACTOR for name, bound in HURRIED_BOUNDS.items()}
    texts = rendered(MixinSettings(bounds=AlertBounds(**seconds)))
    paths = []
    for name in ("rules.yaml", "alerts.yaml"):
        lines = texts[name].splitlines()
        short = [_shorter(line) if re.match(r" +(expr|for): ", line) else line for line in lines]
        paths.append(folder / f"hurried-{name}")
        paths[-1].write_text("\n".join(short) + "\n")
    return paths


def firing(url: str) -> set[str]:
    """Return the alerts that fire."""
    return {name for name, rule in rules(url).items() if rule["type"] == "alerting" and rule["state"] == "firing"}


def wait_until_fired(
    url: str, alerts: Collection[str], others: Collection[str], meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Wait until each of some alerts has fired, and no other did; something is done again and again meanwhile."""
    seen: set[str] = set()
    deadline = time.monotonic() + SECONDS
    while not seen >= set(alerts):
        assert time.monotonic() < deadline, f"of {sorted(alerts)} only {sorted(seen)} fired"
        meanwhile()
        now = firing(url)
        assert not now & set(others), f"{sorted(now & set(others))} fire besides"
        seen |= now
        time.sleep(0.1)


def wait_until_clear(url: str, alerts: Collection[str], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait until rules were evaluated and none of some alerts fires; something is done again and again meanwhile."""
    deadline = time.monotonic() + SECONDS
    while not evaluated(url) or firing(url) & set(alerts):
        assert time.monotonic() < deadline, f"{sorted(firing(url))} fire"
        meanwhile()
        time.sleep(0.1)


def evaluated(url: str) -> bool:
    """Whether every rule was evaluated, without an error."""
    known = rules(url)
    return bool(known) and all(rule["health"] == "ok" for rule in known.values())
