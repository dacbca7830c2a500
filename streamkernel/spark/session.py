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
from streamkernel.spark.failures import failure_of

__all__ = ["make_session", "silence"]

#: Spark hides the values of options with such names.
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
    if _is_own():  # else it knows the executors' interpreter
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_not_of_py4j)
    interrupt = signal.getsignal(signal.SIGINT)
    builder: Any = SparkSession.builder.appName(name).config("spark.redaction.regex", _SECRETS)
    if _is_own() and "spark.ui." not in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        # It would be open to the network, without a password.
        builder = builder.config("spark.ui.enabled", "false")
    try:
        session: SparkSession = builder.getOrCreate()
        server = getattr(session.sparkContext, "_accumulatorServer", None)
        if server is not None:  # it prints a traceback where Java ends, which an error message says already
            server.handle_error = lambda *_: None
        return session
    except (PySparkException, Py4JError, OSError) as error:
        raise DaemonError(
            f"Spark cannot be started: {failure_of(error)}; it needs Java 17 or newer, and a running master "
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


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """What fails in Java is raised, and was logged before with all that led to it, also by the root logger."""
    return "py4j" not in record.pathname


def _is_own() -> bool:
    """Whether Spark is started here, and not by spark-submit."""
    return "PYSPARK_GATEWAY_PORT" not in os.environ
