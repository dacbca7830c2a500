"""A real Prometheus scrapes daemons of all kinds, and every panel of the dashboard gets data from it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.daemon.conftest import Home, Launcher, Running, program, write_stream
from tests.daemon.labels_stream import sections, write_pair
from tests.daemon.refits import refitted

DASHBOARD = Path(__file__).parents[2] / "configs/grafana/streamkernel.json"
# Files do not say how many records are still to come; see tests/kafka/test_shown.py.
OF_TOPICS = {"Lag"}
_VARIABLES = {"$job": ".*", "$instance": ".*", "$__rate_interval": "10s"}


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextmanager
def prometheus(installed: str, folder: Path, targets: list[str]) -> Iterator[str]:
    """Run Prometheus in a folder; gives its address."""
    scrape = {"job_name": "streamkernel", "static_configs": [{"targets": targets}]}
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": "200ms"}, "scrape_configs": [scrape]}))
    address = f"127.0.0.1:{free_port()}"
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                installed,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'prometheus'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            yield f"http://{address}"
        finally:
            process.terminate()
            process.wait(timeout=30)


def answer(url: str, expression: str) -> int:
    """How many series an expression gives; 0 while Prometheus starts."""
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    query = urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=30) as given:
            return len(json.load(given)["data"]["result"])
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 503:  # not ready yet
                return 0
            raise AssertionError(f"{expression}: {error.read().decode()}") from None
    except OSError:
        return 0


def followed(home: Home, launcher: Launcher, **models: Any) -> tuple[Running, str]:
    """A daemon that has learnt its stream and waits for more, also for labels, and where it serves."""
    write_stream(home.folder / "stream.csv", 300)
    write_pair(home.folder, "jsonl", 300)
    labels = sections()["labels"]
    labels["source"]["follow"] = True
    return started(home, launcher, labels=labels, **models)


def detecting(home: Home, launcher: Launcher, model: dict[str, Any]) -> tuple[Running, str]:
    """A model that has learnt its stream, waits for more and serves."""
    write_stream(home.folder / "stream.csv", 300)
    return started(home, launcher, model=[model])


def started(home: Home, launcher: Launcher, **sections: Any) -> tuple[Running, str]:
    source = {"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}
    home.configure(source=source, metrics={"port": 0}, **sections)
    daemon = launcher.start(home, "run", "config.yaml")
    return daemon, daemon.wait_for(r"serving metrics at http://(127\.0\.0\.1:\d+)/metrics")[1]


def test_every_panel_gets_data(tmp_path: Path, homes: Callable[[str], Home], launcher: Launcher) -> None:
    installed = program("prometheus")  # before any daemon is started
    panels = json.loads(DASHBOARD.read_text())["panels"]
    missing = {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in panels}
    assert {title for title in missing if title in OF_TOPICS} == OF_TOPICS
    for title in OF_TOPICS:
        del missing[title]
    growing, adaptive = (
        [{f"streamkernel.{name}": {"seed": 1}}] for name in ("KernelClassifier", "AdaptiveKernelClassifier")
    )
    daemons = [
        followed(homes("growing"), launcher, model=growing),
        followed(homes("adaptive"), launcher, model=adaptive),
        followed(homes("several"), launcher, model=None, models={"one": growing, "other": growing}, publish="one"),
        detecting(homes("refitted"), launcher, *refitted()),
        detecting(homes("novelty"), launcher, {"streamkernel.KernelNoveltyDetector": {"seed": 1}}),
        detecting(homes("ratio"), launcher, {"streamkernel.KernelDensityRatio": {"p": "yes", "q": "no", "seed": 1}}),
    ]
    with prometheus(installed, tmp_path, [address for _, address in daemons]) as url:
        for _ in range(300):  # a rate wants two scrapes
            missing = {
                title: left
                for title, expressions in missing.items()
                if (left := [expression for expression in expressions if not answer(url, expression)])
            }
            if not missing:
                break
            time.sleep(0.1)
        weights = answer(url, "streamkernel_expert_weight")
    for daemon, _ in daemons:
        daemon.signal(signal.SIGTERM)
        assert daemon.wait().returncode == 0
    assert not missing, (tmp_path / "prometheus.log").read_text()
    assert weights == 14
