"""Real Spark: sessions of processes of their own machine, and what a model has learned compared."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

import pytest

from tests.kafka.conftest import _started, broker, installed, topic  # noqa: F401 - fixtures of these tests, too

_MISSING = (
    "Spark's tests need the extra spark: run make test-spark"
    if importlib.util.find_spec("pyspark") is None
    else "Spark needs Java 17 or newer, and there is no java"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ
    else ""
)
collect_ignore_glob = ["[a-z]*.py"] if _MISSING else []

#: Of every session: nothing is shown, and executors find this interpreter and what it can import.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
}


def pytest_report_header() -> list[str]:
    return [f"spark: not tried: {_MISSING}"] if _MISSING else []


@pytest.fixture(scope="session")
def make_session():
    """Give a session on a master: the one there, where it has the same settings, or one in its place."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    made: list[object] = []

    def make(master: str, **settings: str):
        if (before := SparkSession.getActiveSession()) is not None:
            if made == [master, settings]:
                return before
            before.stop()
        made[:] = [master, settings]
        builder = SparkSession.builder.master(master).appName("tests")
        for name, value in {**SETTINGS, **settings}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session

    yield make
    if (last := SparkSession.getActiveSession()) is not None:
        last.stop()


@pytest.fixture(scope="module")
def spark(make_session):
    """A session with two threads of this process."""
    return make_session("local[2]")
