"""Whatever kills the daemon, wherever: it ends as if nothing had happened. `tests/kills` tries the fault points."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon.conftest import Home, write_stream
from tests.kills.simulated import killed, runs


@pytest.mark.parametrize("model", ["KernelClassifier", "AdaptiveKernelClassifier"])
def test_a_seed_that_was_drawn_survives(homes: Callable[[str], Home], tmp_path: Path, model: str) -> None:
    home = homes("one")
    write_stream(home.folder / "stream.csv", 600)
    home.configure(model=[f"streamkernel.{model}"], checkpoint={"directory": "out/state", "every_records": 200})
    killed(home, "consumed:1")
    assert home.header()["account"]["consumed"] == 0
    twin = Home(tmp_path / "twin")
    shutil.copytree(home.folder, twin.folder)
    assert runs(home) == 0
    for count in (10, 250, 144):
        killed(twin, f"consumed:{count}")
    assert runs(twin) == 0
    assert twin.result() == home.result()


@pytest.mark.long
def test_kills_from_outside_at_any_moment_change_nothing(homes: Callable[[str], Home]) -> None:
    """The same with fresh interpreters and a SIGKILL that no point of the program chose."""
    undisturbed, home = homes("undisturbed"), homes("killed")
    for each in (undisturbed, home):
        write_stream(each.folder / "stream.csv", 20_000)
        each.configure()
    draw = random.Random(7)
    state = home.folder / "out/state"
    for _ in range(30):
        process = home.start("run", "config.yaml")
        before = set(state.glob("*.skc"))
        while process.poll() is None and set(state.glob("*.skc")) == before:
            time.sleep(0.001)
        time.sleep(draw.random() * 0.05)
        process.kill()
        process.communicate()
    assert home.call("run", "config.yaml").returncode == undisturbed.call("run", "config.yaml").returncode == 0
    assert home.result() == undisturbed.result()
