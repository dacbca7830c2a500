"""The boards show metrics that the daemon and the service have, and can be imported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamkernel import KernelClassifier
from streamkernel.daemon.monitoring.exporter import Exporter
from tests.daemon.endpoint import get, serving, values_of
from tests.mixin.boards import DAEMON, SERVICE, expressions, names_in, panels, read
from tests.mixin.conftest import MIXIN
from tests.mixin.exported import by_daemons, by_service

both = pytest.mark.parametrize("path", [DAEMON, SERVICE], ids=lambda path: path.stem)
RECORDED = {
    rule["record"] for group in yaml.safe_load((MIXIN / "rules.yaml").read_text())["groups"] for rule in group["rules"]
}
# Of mode predict there are panels on the other board, and what a process is asked for is its own affair.
ELSEWHERE = re.compile(r"streamkernel_model_(checkpoint|reload)\w*|(process|python)_\w+")


def base(name: str) -> str:
    """Name what a part of a histogram belongs to."""
    return re.sub(r"_(bucket|count|sum)$", "", name)


def asked(path: Path) -> set[str]:
    return {name for text in expressions(path) for name in names_in(text)}


def test_the_board_asks_for_all_that_daemons_export_and_for_nothing_else() -> None:
    exported = by_daemons()
    assert asked(DAEMON) <= exported | RECORDED
    # What is recorded is drawn instead of what it is made of.
    through = {name for rule in RECORDED for name in exported if base(name).removeprefix("streamkernel_") in rule}
    bases = {base(name) for name in asked(DAEMON) | through} | asked(DAEMON)
    assert {name for name in exported if base(name) not in bases and not ELSEWHERE.fullmatch(name)} - bases == set()


def test_the_board_of_the_service_asks_for_all_that_it_exports_and_for_nothing_else() -> None:
    exported = by_service()
    assert asked(SERVICE) <= exported
    bases = {base(name) for name in asked(SERVICE)} | asked(SERVICE)
    ours = {name for name in exported if name.startswith("streamkernel_")}
    assert {name for name in ours if base(name) not in bases} - bases == set()


def test_rules_and_alerts_ask_for_what_is_exported() -> None:
    groups = [
        group
        for file in ("rules.yaml", "alerts.yaml")
        for group in yaml.safe_load((MIXIN / file).read_text())["groups"]
    ]
    wanted = {name for group in groups for rule in group["rules"] for name in names_in(rule["expr"])}
    assert len(wanted) > 40
    assert wanted <= by_daemons() | by_service() | RECORDED


@both
def test_a_board_can_be_imported(path: Path) -> None:
    board = read(path)
    assert "uid" not in board
    assert "id" not in board
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert list(variables) == ["datasource", "job", "instance"]
    source = variables["datasource"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    for name in ("job", "instance"):
        assert (variables[name]["multi"], variables[name]["includeAll"], variables[name]["allValue"]) == (
            True,
            True,
            ".*",
        )
        assert variables[name]["query"]["query"].startswith("label_values(")
    numbers = [panel["id"] for panel in [*board["panels"], *panels(board)]]
    assert len(set(numbers)) == len(panels(board)) + sum(panel["type"] == "row" for panel in board["panels"])
    for panel in panels(board):
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert target["legendFormat"] or len(panel["targets"]) == 1


def test_the_page_on_monitoring_tells_of_every_row() -> None:
    rows = [
        f"{row['title']} *" if row["collapsed"] else row["title"]
        for row in read(DAEMON)["panels"]
        if row["type"] == "row"
    ]
    page = (MIXIN.parents[1] / "docs" / "how-to" / "monitoring.md").read_text().split("| row | what it tells |")[1]
    assert re.findall(r"^\| ([^|]+) \|", page.split("\n\n")[0], re.MULTILINE)[1:] == rows


@both
def test_every_query_asks_for_the_chosen_jobs_and_instances(path: Path) -> None:
    for text in expressions(path):
        if text.startswith("label_values"):
            continue
        selectors = re.findall(r"\{([^}]*)\}", text)
        assert selectors
        assert all('job=~"$job", instance=~"$instance"' in selector for selector in selectors)
        assert set(re.findall(r"\[(.*?)\]", text)) <= {"$__rate_interval"}


@both
def test_drift_and_restarts_are_marked(path: Path) -> None:
    marks = {one["name"] for one in read(path)["annotations"]["list"]}
    assert marks == ({"Drift", "Restart"} if path == DAEMON else {"Restart"})


def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
    place = panel["gridPos"]
    assert place["x"] + place["w"] <= 24
    return {
        (x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])
    }


@both
def test_no_two_panels_overlap(path: Path) -> None:
    board = read(path)
    folded = [row["panels"] for row in board["panels"] if row["type"] == "row" and row["collapsed"]]
    for together in [board["panels"], *folded]:
        taken: set[tuple[int, int]] = set()
        for panel in together:
            assert not cells(panel) & taken
            taken |= cells(panel)


def test_the_counters_it_rates_are_there_before_they_count() -> None:
    with serving(registry=Exporter(KernelClassifier(), ["accuracy"], 1000).registry) as url:
        values = values_of(get(f"{url}/metrics")[1])
    for name in ("feature_blocks_total{action=grown}", "records_dead_lettered_total{reason=refused}"):
        assert values[name] == 0
