"""The files of the mixin are those that its generator writes, and jsonnet reads them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from configs.mixin.__main__ import main
from configs.mixin.alerts import alerts_by_group
from configs.mixin.render import rendered
from configs.mixin.settings import AlertBounds, MixinSettings
from tests.mixin.conftest import MIXIN


def test_each_file_is_as_it_is_written_anew() -> None:
    files = {path.relative_to(MIXIN).as_posix() for path in MIXIN.rglob("*") if path.suffix in {".json", ".yaml"}}
    written = rendered(MixinSettings())
    assert files == set(written)
    for name, text in written.items():
        assert (MIXIN / name).read_bytes() == text.encode(), f"{name}: run `python -m configs.mixin`"


def alerts(text: str) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]}


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        main([f"--output={tmp_path / 'file'}"])
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("cannot be written: File exists: give another folder as --output")


def test_the_command_writes_other_addresses_and_bounds(tmp_path: Path) -> None:
    main(
        [
            f"--output={tmp_path}",
            "--runbooks=https://books.example/streamkernel/",
            "--dashboards=https://grafana.example/d/abc",
            '--selector=job="kernels"',
            "--bound=dead_letter_share=0.25",
        ]
    )
    rule = alerts((tmp_path / "alerts.yaml").read_text())["StreamkernelDeadLetters"]
    assert rule["expr"].endswith("> 0.25")
    assert "more than 25% of the records" in rule["annotations"]["description"]
    assert rule["annotations"]["runbook_url"] == "https://books.example/streamkernel/StreamkernelDeadLetters.html"
    assert rule["annotations"]["dashboard_url"] == "https://grafana.example/d/abc"
    assert alerts((tmp_path / "alerts.yaml").read_text())["StreamkernelDown"]["expr"] == 'up{job="kernels"} == 0'
    board = json.loads((tmp_path / "dashboards" / "streamkernel.json").read_text())
    assert board["links"][0]["url"] == "https://books.example/streamkernel/index.html"


@pytest.mark.parametrize("given", ["dead_letter_share", "dead_letter_share=many", "dead_letters=0.1"])
def test_a_bound_that_is_none_is_refused(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--output={tmp_path}", f"--bound={given}"])
    assert ended.value.code == 2
    assert f"--bound {given}: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_every_bound_counts() -> None:
    """Another value of any of them changes the alerts."""
    usual = alerts_by_group(MixinSettings())
    for name in AlertBounds.__dataclass_fields__:
        assert alerts_by_group(MixinSettings(bounds=AlertBounds(**{name: 0.123}))) != usual, name


def evaluated(jsonnet: str, expression: str) -> dict[str, Any]:
    done = subprocess.run(
        [jsonnet, "-J", str(MIXIN), "-e", f"local mixin = import 'mixin.libsonnet'; {expression}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    given: dict[str, Any] = json.loads(done.stdout)
    return given


def test_jsonnet_reads_the_mixin(jsonnet: str) -> None:
    mixin = evaluated(jsonnet, "{d: mixin.grafanaDashboards, r: mixin.prometheusRules, a: mixin.prometheusAlerts}")
    boards = {path.name: json.loads(path.read_text()) for path in (MIXIN / "dashboards").iterdir()}
    assert mixin["d"] == boards
    assert mixin["r"] == yaml.safe_load((MIXIN / "rules.yaml").read_text())
    assert mixin["a"] == yaml.safe_load((MIXIN / "alerts.yaml").read_text())


def test_jsonnet_changes_what_the_command_changes(jsonnet: str) -> None:
    addresses = "runbooksURL: 'https://b.example', dashboardsURL: 'https://g.example'"
    ours = f"{{{addresses}, streamkernelSelector: 'job=\"kernels\"'}}"
    mixin = evaluated(
        jsonnet,
        f"local changed = mixin + {{_config+:: {ours}}}; {{d: changed.grafanaDashboards, a: changed.prometheusAlerts}}",
    )
    written = rendered(MixinSettings("https://b.example", "https://g.example", 'job="kernels"'))
    assert mixin["a"] == yaml.safe_load(written["alerts.yaml"])
    assert mixin["d"]["streamkernel.json"] == json.loads(written["dashboards/streamkernel.json"])


def test_mixins_can_be_added_to_each_other(jsonnet: str) -> None:
    other = "{prometheusAlerts+:: {groups+: [{name: 'other', rules: []}]}, grafanaDashboards+:: {'other.json': {}}}"
    given = evaluated(jsonnet, f"local all = mixin + {other}; {{d: all.grafanaDashboards, a: all.prometheusAlerts}}")
    assert [group["name"] for group in given["a"]["groups"]][-2:] == ["streamkernel-serve", "other"]
    assert set(given["d"]) == {"streamkernel.json", "streamkernel-serve.json", "other.json"}
