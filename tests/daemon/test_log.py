"""Lines of the log: warnings are sentences without lines of code, and there is no loss where none is known."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

from streamkernel.daemon.cli import main
from streamkernel.daemon.config.schema import LogConfig
from streamkernel.daemon.config.secrets import Redactor
from streamkernel.daemon.monitoring.log import start_logging
from streamkernel.estimators import base
from tests.daemon.conftest import Home


@pytest.fixture
def logged() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        start_logging(LogConfig(), Redactor({"password": "hush"}))
        yield


@pytest.mark.usefixtures("logged")
def test_a_warning_of_ours_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    warnings.warn_explicit("inputs past max_inputs=3 are ignored", RuntimeWarning, base.__file__, 122)
    told = capsys.readouterr().err
    assert told.endswith("Z warning inputs past max_inputs=3 are ignored\n")


@pytest.mark.usefixtures("logged")
def test_a_warning_of_others_says_where_it_arose(capsys: pytest.CaptureFixture[str]) -> None:
    warnings.warn_explicit("divided by zero", RuntimeWarning, __file__, 1)
    told = capsys.readouterr().err
    assert told.endswith(f"warning {__file__}:1: RuntimeWarning: divided by zero\n")


def test_records_without_labels_have_no_loss(here: Home, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "\n".join('{"a": 1}' for _ in range(1100))
    (here.folder / "stream.jsonl").write_text(lines + "\n")
    model = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]
    here.configure(source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"}, model=model)
    assert main(["run", "config.yaml"]) == 0
    told = capsys.readouterr().err
    assert " info    600 records, 0 features\n" in told
    assert "nan" not in told
