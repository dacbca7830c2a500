"""What `inspect` shows of a checkpoint, and checkpoints that were copied or hold numbers JSON has no word for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from tests.daemon.conftest import Home, Launcher


class TestInspect:
    def test_nothing_from_a_record_steers_the_terminal(self, home: Home, launcher: Launcher) -> None:
        name = "a\x1b[2J\x9b31m\u202e\u2028b\nc"
        lines = [json.dumps({name: n % 7, "y": "p\x1b[0m" if n % 2 else "q"}) for n in range(300)]
        (home.folder / "stream.jsonl").write_text("\n".join(lines) + "\n")
        adaptive = {"seed": 1, "n_features": 4, "metric_schedule": [50], "buffer_size": 60, "n_trees": 0}
        home.configure(
            source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"},
            model=[{"streamkernel.AdaptiveKernelClassifier": adaptive}],
        )
        ran = launcher.call(home, "run", "config.yaml")
        assert ran.returncode == 0
        for arguments in (["out/state"], ["out/state", "--json"]):
            shown = launcher.call(home, "inspect", *arguments)
            assert shown.returncode == 0
            for text in (shown.stdout, shown.stderr, ran.stdout, ran.stderr):
                assert not set(text) & set("\x1b\x9b\u202e\u2028\r\x07")
        assert json.loads(shown.stdout)["model"]["input_importance"] == {name: 1.0}

    def test_a_file_named_to_deceive_is_named_as_it_is(self, home: Home, launcher: Launcher) -> None:
        shown = launcher.call(home, "inspect", "no\x1b[31mthing")
        assert shown.returncode == 1
        assert shown.stderr == "streamkernel: no\\x1b[31mthing: cannot be read: No such file or directory\n"


def test_copies_by_hard_links_are_read(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "state")
    store.lock()
    path = store.write({"i": 1}, b"")
    store.close()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / path.name).hardlink_to(path)
    assert CheckpointStore(tmp_path / "copy").newest() == read(path)
    shutil.rmtree(tmp_path / "copy")
