"""Jobs in the session of a test, or as a user starts them: the command in a process. What its checkpoints hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.spark.job import JobOptions, run_job

SECONDS = 240


class Job:
    """A configuration in a folder of its own, with the job that it describes.

    Parameters
    ----------
    folder
        The folder.
    source, model
        Sections of the configuration.
    jars
        What `spark.jars` is to be; empty: nothing.
    others
        Further sections.

    """

    def __init__(self, folder: Path, source: dict[str, Any], model: Any, jars: str = "", **others: Any) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.config = folder / "job.yaml"
        self._jars = jars
        sections = {
            "source": source,
            "model": model,
            "checkpoint": {"directory": str(self.state)},
            "metrics": None,
            **others,
        }
        self.config.write_text(yaml.safe_dump(sections))

    def start(
        self, *options: str, crash: str = "", command: str = "spark", master: str = "local[2]"
    ) -> subprocess.Popen[str]:
        """Start it, in a process group of its own."""
        submit = ["--master", master, "--driver-java-options", "-Djava.net.preferIPv4Stack=true"]
        for name, value in {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}.items():
            submit += ["--conf", f"{name}={value}"]
        if self._jars:
            submit += ["--jars", self._jars]
        environment = {
            **os.environ,
            "STREAMKERNEL_CRASH": crash,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYSPARK_SUBMIT_ARGS": " ".join([*submit, "pyspark-shell"]),
        }
        arguments = [sys.executable, "-m", "streamkernel", command, str(self.config), *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(arguments, env=environment, cwd=self.folder, text=True, start_new_session=True, **pipes)

    def run(self, *options: str, **given: str) -> tuple[int, str]:
        """Run it to its end, with what `start` is given; its exit status, and what it printed."""
        process = self.start(*options, **given)
        try:
            printed, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, printed

    def learn(self, spark: SparkSession, **options: Any) -> dict[str, int]:
        """Learn what is there in a session of this process, which needs no new Java; gives the account."""
        return run_job(prepare(self.config, os.environ, []), JobOptions(until_end=True, **options), spark).account

    def checkpoint(self) -> Checkpoint:
        """The newest checkpoint."""
        found = CheckpointStore(self.state).newest()
        assert found is not None
        return found

    @property
    def account(self) -> dict[str, int]:
        """The counts in the newest checkpoint."""
        account: dict[str, int] = self.checkpoint().header["source"]["account"]
        return account

    @property
    def digest(self) -> str:
        """The digest of the model in it."""
        return str(published_entry(self.checkpoint().header)["state_digest"])


def write_lines(path: Path, frame: Any) -> None:
    """Write records as JSON lines, under their name only when they are whole."""
    rows = frame.to_dict("records")
    text = "".join(json.dumps({k: v for k, v in row.items() if v == v}) + "\n" for row in rows)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    hidden.rename(path)
