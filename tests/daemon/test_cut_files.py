"""A compressed file that is cut short: each command says so in one sentence and ends with status 1."""

from __future__ import annotations

import gzip
import sys
import zlib
from pathlib import Path

import pytest

from streamkernel.daemon.cli import main
from tests.daemon.conftest import Home

SENTENCE = "other.csv.gz: the compressed data end early, the file is truncated or still being written, at byte "


def cut(folder: Path, share: float) -> bytes:
    """Leave a share of a compressed file, and return what can be decompressed of it."""
    whole = gzip.compress((folder / "other.csv").read_bytes())
    path = folder / "other.csv.gz"
    path.write_bytes(whole[: int(share * len(whole))])
    return zlib.decompressobj(31).decompress(path.read_bytes())


def test_predict_gives_the_lines_before_the_cut(
    trained: Home, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    main(["predict", "out/state", "other.csv"])
    sys.stdout.flush()
    whole = capfd.readouterr().out.splitlines()
    n_lines = cut(trained.folder, 0.5).count(b"\n") - 1
    assert main(["predict", "out/state", "other.csv.gz"]) == 1
    sys.stdout.flush()
    out, err = capfd.readouterr()
    some = out.splitlines()
    assert 0 < len(some) <= n_lines
    assert [line.partition('"prediction')[2] for line in some] == [
        line.partition('"prediction')[2] for line in whole[: len(some)]
    ]
    assert (err + caplog.text).count(SENTENCE) == 1
