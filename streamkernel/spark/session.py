"""The session of a job: Spark and the Java that it runs in, started quietly, or one sentence why not."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streamkernel.daemon.base.errors import DaemonError

__all__ = ["make_session", "silence"]

#: Of what options say, Spark shows all whose name does not look like a secret.
_SECRETS = "(?i)secret|password|token|access[.]?key|jaas|keystore"


def make_session(name: str) -> SparkSession:
    """Start Spark, or take the session of this process.

    Parameters
    ----------
    name
        Of the application.

    Raises
    ------
    DaemonError
        Spark or Java does not start.

    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not by spark-submit, which knows the executors' interpreter
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # It logs what fails in Java before it is raised, with all that led to it.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        return SparkSession.builder.appName(name).config("spark.redaction.regex", _SECRETS).getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise DaemonError(
            f"Spark cannot be started: {_reason(error)}; it needs Java 17 or newer, and a master that answers "
            "(--master or spark.master)"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():  # Spark has a handler of its own
            signal.signal(signal.SIGINT, interrupt)


def silence(session: SparkSession) -> None:
    """Have Java log nothing more: a query that is stopped in its micro-batch logs that as an error."""
    jvm: Any = session._jvm
    jvm.org.apache.logging.log4j.core.config.Configurator.setRootLevel(jvm.org.apache.logging.log4j.Level.OFF)
    session.sparkContext.setLogLevel("OFF")


def _reason(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    return str(error if java is None else java.toString()).strip().splitlines()[0][:300]
