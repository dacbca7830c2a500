"""The runbooks: one page for each alert; `python -m tests.mixin.test_runbooks` writes their heads and the index."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from configs.mixin.alerts import Alert, alerts_by_group
from configs.mixin.settings import AlertBounds, MixinSettings
from tests.mixin.boards import names_in
from tests.mixin.exported import by_daemons, by_service
from tests.mixin.test_dashboards import RECORDED, base

ROOT = Path(__file__).parents[2]
FOLDER, HOW_TO = ROOT / "docs" / "runbooks", ROOT / "docs" / "how-to" / "monitoring.md"
GROUPS = alerts_by_group(MixinSettings())
ALERTS = {alert.name: alert for group in GROUPS.values() for alert in group}
INDEX = """# Runbooks

Each alert of [the mixin](../how-to/monitoring.md) has a page here. It says what the alert means, what it costs, how to
find the cause, and what to do. The alert links to its page as `runbook_url`.

- `critical`: act now.
- `warning`: look today.
- `info`: good to know.
"""
TITLES = {
    "process": "The process",
    "stream": "The stream",
    "checkpoints": "Checkpoints",
    "learning": "Learning",
    "labels": "Late labels",
    "detectors": "Detectors",
    "window": "Refits of a window",
    "serve": "`streamkernel serve`",
}


def head(alert: Alert) -> str:
    """Return how the page of an alert begins."""
    expression = alert.expr.strip()
    return f"""# {alert.name}

Severity: `{alert.severity}`. It fires when {alert.when}.

```promql
{expression}
```

## Meaning
"""


def index() -> str:
    """Return the page with the table of all alerts."""
    parts = [INDEX]
    for group, alerts in GROUPS.items():
        rows = [
            f"| [{alert.name}]({alert.name}.md) | `{alert.severity}` | {alert.when} | {alert.first} |"
            for alert in alerts
        ]
        title = TITLES[group.removeprefix("streamkernel-")]
        parts.append(
            "\n".join(
                [f"## {title}\n", "| alert | severity | it fires when | first step |", "| - | - | - | - |", *rows, ""]
            )
        )
    return "\n".join(parts)


def bounds() -> str:
    """Return the table of the bounds, for the page on monitoring."""
    rows = [
        f"| `{field.name}` | {field.default:,g} | {field.metadata['text']} |"
        for field in dataclasses.fields(AlertBounds)
    ]
    return "\n".join(["| bound | default | |", "| --- | --- | --- |", *rows, ""])


def test_an_alert_has_its_runbook(subtests: pytest.Subtests) -> None:
    exported = by_daemons() | by_service() | RECORDED
    known = exported | {base(one) for one in exported}
    for name in ALERTS:
        with subtests.test(name=name):
            text = (FOLDER / f"{name}.md").read_text()
            assert text.startswith(head(ALERTS[name])), "run `python -m tests.mixin.test_runbooks`"
            assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Meaning", "Impact", "Diagnosis", "Mitigation"]
            assert names_in(text) <= known


def test_prometheus_understands_what_the_runbooks_ask(promtool: str, tmp_path: Path) -> None:
    pages = {path.stem: path.read_text().split("## Meaning")[1] for path in FOLDER.glob("Streamkernel*.md")}
    asked = {code for text in pages.values() for code in re.findall(r"`([^`]+)`", text) if names_in(code)}
    assert len(asked) > 50
    rules = [{"record": f"asked_{number}", "expr": " ".join(code.split())} for number, code in enumerate(asked)]
    path = tmp_path / "asked.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_index_has_the_table_and_no_page_is_left_over() -> None:
    assert (FOLDER / "index.md").read_text() == index()
    assert {path.stem for path in FOLDER.glob("*.md")} == {*ALERTS, "index"}


def test_the_runbooks_are_in_the_menu() -> None:
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    (runbooks,) = (entry["Runbooks"] for entry in menu if "Runbooks" in entry)
    pages = [place for entry in runbooks for place in entry.values()]
    assert pages == ["runbooks/index.md", *(f"runbooks/{name}.md" for name in ALERTS)]


def test_the_page_on_monitoring_has_the_bounds() -> None:
    assert bounds() in HOW_TO.read_text()


@pytest.mark.parametrize(
    ("group", "page"),
    [("detectors", "how-to/detectors"), ("window", "how-to/refits"), ("serve", "operate/watching")],
)
def test_the_page_of_a_part_names_its_alerts(group: str, page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    assert [alert.name for alert in GROUPS[f"streamkernel-{group}"] if f"`{alert.name}`" not in text] == []


if __name__ == "__main__":
    for name, alert in ALERTS.items():
        path = FOLDER / f"{name}.md"
        path.write_text(head(alert) + path.read_text().split("## Meaning\n", 1)[1])
    (FOLDER / "index.md").write_text(index())
    text = HOW_TO.read_text()
    HOW_TO.write_text(re.sub(r"\| bound \| default \|.*?\n\n", lambda _: bounds() + "\n", text, flags=re.DOTALL))
