"""What the package offers, and what it costs to import it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from streamkernel import connectors


def test_what_is_offered_is_there(subtests: pytest.Subtests) -> None:
    for name in connectors.__all__:
        with subtests.test(name=name):
            assert getattr(connectors, name) is not None


def test_nothing_else_is_offered() -> None:
    assert connectors.__all__ == sorted(connectors.__all__)
    with pytest.raises(AttributeError, match=r"'streamkernel.connectors'.*'AvroSource'"):
        connectors.AvroSource  # noqa: B018


@pytest.mark.usefixtures("processes")
def test_a_client_is_imported_by_those_who_ask_for_it() -> None:
    """The client of Kafka and River's data sets take longer to import than everything else here."""
    script = """
import sys
from streamkernel import connectors
assert not {"kafka", "river", "sklearn", "pandas"} & set(sys.modules)
assert connectors.KafkaSource.__module__ == "streamkernel.connectors.kafka.reading.source"
assert connectors.KafkaSink.__module__ == "streamkernel.connectors.kafka.writing.sink"
assert "kafka" in sys.modules and "river" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
