"""A real Prometheus scrapes daemons of all kinds that learn: panels, recording rules and alerts get data from it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.daemon.conftest import Home, Launcher, program
from tests.mixin.boards import DAEMON, SERVICE, asked_by_panel, read
from tests.mixin.conftest import MIXIN
from tests.mixin.daemons import all_kinds, service
from tests.mixin.hurried import evaluated
from tests.mixin.scraping import (
    ALERTS_OF_TOPICS,
    PANELS_OF_TOPICS,
    answer,
    prometheus,
    rules,
    without_bounds,
    write_history,
)

pytestmark = pytest.mark.usefixtures("processes")

LAG = "instance:streamkernel_consumer_lag_records:sum"
SECONDS = 90


def of_alerts() -> dict[str, list[str]]:
    """Return what each alert asks for, without its bounds; what is absent is asked for with a target that is."""
    groups = yaml.safe_load((MIXIN / "alerts.yaml").read_text())["groups"]
    asked = {
        rule["alert"]: [without_bounds(rule["expr"])]
        for group in groups
        for rule in group["rules"]
        if rule["alert"] not in ALERTS_OF_TOPICS
    }
    assert asked["StreamkernelTargetMissing"] == ['absent(up{job=~"streamkernel.*"})']
    return asked | {"StreamkernelTargetMissing": ['absent(up{job="nobody"})']}


def of_rules() -> dict[str, list[str]]:
    groups = yaml.safe_load((MIXIN / "rules.yaml").read_text())["groups"]
    names = {rule["record"] for group in groups for rule in group["rules"]} - {LAG}
    return {name: [name] for name in names}


def of_boards() -> dict[str, list[str]]:
    panels = asked_by_panel(DAEMON)
    assert panels.keys() > PANELS_OF_TOPICS
    marks = {f"{path.stem}: {one['name']}": [one["expr"]] for path in (DAEMON, SERVICE) for one in marked(path)}
    of_files = {title: asked for title, asked in panels.items() if title not in PANELS_OF_TOPICS}
    return of_files | {f"serve: {title}": asked for title, asked in asked_by_panel(SERVICE).items()} | marks


def marked(path: Path) -> list[dict[str, str]]:
    """Return the annotations, for changes that none is asked of here."""
    return [one | {"expr": without_bounds(one["expr"])} for one in read(path)["annotations"]["list"]]


def unanswered(url: str, missing: Mapping[str, list[str]]) -> dict[str, list[str]]:
    left = {title: [one for one in asked if not answer(url, one)] for title, asked in missing.items()}
    return {title: asked for title, asked in left.items() if asked}


def counts(url: str) -> tuple[int, int]:
    """Count the daemons that learn, and the targets that answer."""
    return answer(url, "rate(streamkernel_records_learned_total[10s]) > 0"), answer(url, "up == 1")


def test_every_panel_and_rule_gets_data(
    tmp_path: Path, homes: Callable[[str], Home], launcher: Launcher, promtool: str
) -> None:
    installed = program("prometheus")  # before any daemon is started
    missing = of_boards() | of_alerts() | of_rules()
    scraped = all_kinds(homes, launcher) | {"service": service(homes("service"), launcher)}
    write_history(promtool, tmp_path, scraped["growing"].address)
    deadline = time.monotonic() + SECONDS
    with prometheus(installed, tmp_path, [one.address for one in scraped.values()]) as url:
        while missing and time.monotonic() < deadline:
            for one in scraped.values():
                one.more()
            missing = unanswered(url, missing)
            time.sleep(0.2)
        while not evaluated(url) or counts(url) != (len(scraped) - 1, len(scraped)):
            assert time.monotonic() < deadline, (counts(url), rules(url))
            for one in scraped.values():
                one.more()
            time.sleep(0.1)
        seen = rules(url)
        weights = answer(url, "streamkernel_expert_weight")
    for one in scraped.values():
        one.daemon.signal(signal.SIGTERM)
        assert one.daemon.wait().returncode == 0
    assert not missing, (tmp_path / "prometheus.log").read_text()
    assert len(seen) == len(of_rules()) + 1 + len(of_alerts()) + len(ALERTS_OF_TOPICS)
    assert weights == 14 + 3 * 6  # of an adaptive model, and of three mixtures
