"""A folder that cannot be made, because something else stands where it or one above it would be."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.regular import make_folder
from streamkernel.daemon.checkpoints.store import CheckpointStore


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    for _ in range(2):
        make_folder(tmp_path / "a/b")
    assert (tmp_path / "a/b").is_dir()


@pytest.mark.parametrize("inner", ["", "inner"])
def test_a_file_in_the_way_is_no_directory(tmp_path: Path, inner: str) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NotADirectoryError, match="Not a directory"):
        make_folder(file / inner)
    with pytest.raises(NotADirectoryError, match="Not a directory"):
        CheckpointStore(file / inner).lock()
