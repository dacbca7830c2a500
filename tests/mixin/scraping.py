"""A real Prometheus that scrapes daemons, evaluates the rules of the mixin, and is asked for what boards show."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from configs.mixin.rules import LOSS
from tests.mixin.conftest import MIXIN
from tests.ports import reserved_port

# Files do not say how many records are still to come, and only topics have groups; see tests/kafka/test_shown.py.
PANELS_OF_TOPICS = {"Lag by topic and partition", "Lag of each instance", "Partitions of each member"}
ALERTS_OF_TOPICS = {"StreamkernelSourceStalled", "StreamkernelLagGrowing"}
RULE_FILES = (MIXIN / "rules.yaml", MIXIN / "alerts.yaml")
_VARIABLES = {"$job": ".*", "$instance": ".*", "$__rate_interval": "10s"}


@contextmanager
def prometheus(
    installed: str, folder: Path, targets: list[str], rule_files: Sequence[Path] = RULE_FILES
) -> Iterator[str]:
    """Run Prometheus with the rules in a folder, which may hold blocks already; gives its address."""
    settings = {
        "global": {"scrape_interval": "200ms", "evaluation_interval": "500ms"},
        "rule_files": [str(path) for path in rule_files],
        "scrape_configs": [{"job_name": "streamkernel", "static_configs": [{"targets": targets}]}],
    }
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump(settings))
    address = f"127.0.0.1:{reserved_port()}"
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


def write_history(promtool: str, folder: Path, target: str) -> None:
    """Write what Prometheus recorded of the loss of a target in the last nine days, as blocks in its storage."""
    end = int(time.time()) - 3 * 3600
    labels = f'{{job="streamkernel",instance="{target}"}}'
    values = [f"{LOSS}{labels} {0.5 + 0.01 * (i % 3)} {end - 600 * i}" for i in range(9 * 144, 0, -1)]
    path = folder / "history.txt"
    path.write_text("\n".join([f"# TYPE {LOSS} gauge", *values, "# EOF", ""]))
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", str(path), str(folder / "prometheus")],
        check=True,
        capture_output=True,
    )


def _get(url: str, path: str, **query: str) -> Any:
    """Ask for something; None while Prometheus starts."""
    asked = f"{url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(asked, timeout=30) as given:
            return json.load(given)["data"]
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 503:  # not ready yet
                return None
            raise AssertionError(f"{query}: {error.read().decode()}") from None
    except OSError:
        return None


def answer(url: str, expression: str) -> int:
    """How many series an expression gives; 0 while Prometheus starts."""
    for name, value in _VARIABLES.items():
        expression = expression.replace(name, value)
    given = _get(url, "query", query=expression)
    return 0 if given is None else len(given["result"])


def rules(url: str) -> dict[str, Mapping[str, Any]]:
    """Return what Prometheus says of each rule, by its name; nothing while it starts."""
    given = _get(url, "rules") or {"groups": []}
    return {rule["name"]: rule for group in given["groups"] for rule in group["rules"]}


def without_bounds(expression: str) -> str:
    """Return an alert's expression without its comparisons: it gives data where there are the metrics it asks for.

    >>> without_bounds("a / b > 0.1 and c >= d")
    'a / b and c >= bool d'

    """
    without = re.sub(r" (==|>=|<=|>|<) -?[\d.e+]+", "", expression)
    return re.sub(r" (==|>=|<=|>|<) (?!bool)", r" \1 bool ", without)
