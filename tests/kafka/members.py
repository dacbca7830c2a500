"""Members of a consumer group for the tests: processes, and a folder they share."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.monitoring.inspection import describe
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from tests.kafka.cluster import Cluster
from tests.kafka.learning import section
from tests.processes import wait_until

# Tests that are killed leave no member behind, as a member leaves no child.
_MAIN = """
import os, sys
from streamkernel.daemon import cli
from streamkernel.daemon.base.parent_death import die_with
die_with(os.getppid())
sys.exit(cli.main())
"""
_ROOT = Path(__file__).parents[2]
_SECONDS = 120
"""How long anything may take: only what hangs gets there."""

Row = Mapping[str, Any]


def rows(count: int, start: int = 0) -> list[Row]:
    """Records of two rings, the same whenever they are asked for."""
    found = []
    for i in range(start, start + count):
        a, b = (i * 7919 % 2003) / 1001 - 1, (i * 104_729 % 1999) / 999 - 1
        found.append({"a": a, "b": b, "y": "in" if (a * a + b * b < 0.8) != (i % 23 == 0) else "out"})
    return found


class Member:
    """A member at work, in a process of its own."""

    def __init__(self, folder: Path, name: str, config: str, path: str) -> None:
        self._err = folder / f"{name}.log"
        with self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, "run", config],
                cwd=folder,
                stdout=err,
                stderr=err,
                env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
            )

    @property
    def log(self) -> str:
        return self._err.read_text()

    def wait_for(self, text: str, times: int = 1) -> str:
        """Wait until a pattern stands in the log, and give its (last) group."""
        wait_until(lambda: len(re.findall(text, self.log)) >= times or self._process.poll() is not None, text)
        found = re.findall(text, self.log)
        assert len(found) >= times, f"{text!r} not in {self.log}"
        return str(found[-1])

    def holds(self, partitions: Collection[int]) -> bool:
        """Whether the member was last given just these partitions."""
        said = re.findall(r"holding (?:partitions ([\d, ]+)|no partition) \(", self.log)
        return bool(said) and {int(one) for one in said[-1].split(",") if one} == set(partitions)

    def get(self, path: str) -> str:
        """Ask the member for a page, whatever the status."""
        url = re.findall(r" info +serving metrics at (\S+)/metrics", self.log)[0]
        try:
            with urllib.request.urlopen(f"{url}{path}", timeout=30) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def state_of(self, partition: int) -> str | None:
        """What the process of a partition does, as the member's status has it; None where it has no such partition."""
        shown = json.loads(self.get("/api/status"))["partitions"]
        return next((str(one["process"]) for one in shown if one["partition"] == partition), None)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        return self._process.wait(timeout=_SECONDS)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def end(*members: Member) -> None:
    """End members in good order."""
    for member in members:
        member.signal(signal.SIGTERM)
    for member in members:
        assert member.wait() == 0, member.log


class Group:
    """A folder with a configuration, and the members that work on it.

    Parameters
    ----------
    folder
        Shared by all members.
    broker, topic
        What they read.
    partitions
        How many there are.

    """

    def __init__(self, folder: Path, broker: Cluster, topic: str, partitions: int) -> None:
        self.folder = folder
        self.name = f"group-of-{topic}"
        self.partitions = range(partitions)
        self._broker = broker
        self.topic = topic
        self.members: list[Member] = []
        self.configure()

    def configure(self, **sections: Any) -> Path:
        settings: dict[str, Any] = {
            "source": self.source(),
            "model": [{"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}],
            "predictions": {"kind": "jsonl", "path": "out/predictions-{partition}.jsonl"},
            "dead_letters": {"kind": "jsonl", "path": "out/dead-{partition}.jsonl"},
            "checkpoint": {"directory": "out/state", "every_records": 1000, "every_seconds": 0.5},
            "metrics": {"port": 0},
        }
        settings.update(sections)
        path = self.folder / "config.yaml"
        path.write_text(yaml.safe_dump(settings, sort_keys=False))
        return path

    def source(self, **settings: Any) -> dict[str, Any]:
        options = {"session_timeout_ms": 1500, "heartbeat_interval_ms": 300, **settings.pop("options", {})}
        described = section(self._broker.bootstrap, self.topic, target="y", group=self.name, options=options)
        return {**described, **settings}

    def start(self, *path: str) -> Member:
        """Start one more member, which finds modules in these folders too."""
        member = Member(self.folder, f"member-{len(self.members)}", "config.yaml", os.pathsep.join([str(_ROOT), *path]))
        self.members.append(member)
        return member

    def pid(self, partition: int) -> int:
        """The process that holds a partition's directory, or held it last."""
        lock = self.folder / f"out/state/partition-{partition}/lock"
        # Whoever takes it over empties the file first: it is read once.
        held = lock.read_text() if lock.exists() else ""
        return int(held.split()[0]) if held else 0

    def saved(self, partition: int) -> int:
        """How many records of a partition are in its newest checkpoint."""
        directory = self.folder / f"out/state/partition-{partition}"
        if not list(directory.glob("checkpoint-*.skc")):
            return 0
        return int(describe(directory)["source"]["account"]["consumed"])

    def wait_until_saved(self, count: int) -> None:
        """Wait until every partition has learned so many records, and saved them."""
        wait_until(lambda: all(self.saved(one) >= count for one in self.partitions), f"{count} records to be saved")

    def result(self, partition: int) -> tuple[Any, ...]:
        """What must be the same however often the partition changed hands."""
        header = describe(self.folder / f"out/state/partition-{partition}")
        outputs = [self.folder / f"out/{name}-{partition}.jsonl" for name in ("predictions", "dead")]
        return (
            published_entry(header),
            header["source"]["account"],
            header["source"]["positions"],
            *(path.read_bytes() for path in outputs),
        )

    def undisturbed(self, partition: int, records: int) -> tuple[Any, ...]:
        """The same of a daemon of its own that reads just this partition."""
        folder = self.folder / "undisturbed"
        folder.mkdir(exist_ok=True)
        config = yaml.safe_load((self.folder / "config.yaml").read_text())
        del config["source"]["group"], config["source"]["options"]
        config["source"]["partitions"] = [partition]
        config["checkpoint"]["directory"] = str(folder / f"out/state/partition-{partition}")
        for output, name in (("predictions", "predictions"), ("dead_letters", "dead")):
            config[output]["path"] = str(folder / f"out/{name}-{partition}.jsonl")
        config["metrics"] = None
        path = folder / f"{partition}.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        run(prepare(path), max_records=records)
        return Group.result(_At(folder), partition)

    def assert_undisturbed(self, records: int) -> None:
        """Every partition ended as one that nothing happened to."""
        for partition in self.partitions:
            assert self.result(partition) == self.undisturbed(partition, records)

    def close(self) -> None:
        for member in self.members:
            member.close()


class _At(Group):
    """The folder of a run without a group."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
