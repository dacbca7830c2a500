"""The jars of Spark's source and sink of Kafka: fetched once, and kept in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_POM = Path(__file__).parent / "pom.xml"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
#: All else that these need, Spark has.
_NEEDED = "spark-sql-kafka-0-10_2.13,spark-token-provider-kafka-0-10_2.13,kafka-clients,commons-pool2"


def kafka_jars() -> str:
    """What `spark.jars` is to be; skips the test where there is no Maven, and fails it in CI."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamkernel-tests"
    folder = cache / f"spark-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "spark.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _fetch(cache, folder)
    return ",".join(sorted(map(str, folder.glob("*.jar"))))


def _fetch(cache: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        why = "the jars of Spark's source of Kafka come by Maven, and there is no mvn"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        jars = Path(scratch, "jars")
        options = [f"-DincludeArtifactIds={_NEEDED}", "-DincludeScope=compile", f"-DoutputDirectory={jars}"]
        subprocess.run([maven, "-B", "-q", "-f", _POM, _COPY, *options], check=True, capture_output=True, timeout=600)
        jars.rename(folder)
