"""Whatever kills the daemon, wherever: it ends as if nothing had happened."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.refits import refitted

RECORDS = 20_000
PIPELINES = [
    ["river.preprocessing.StandardScaler", {"river.linear_model.LogisticRegression": {"l2": 0.001}}],
    [{"streamkernel.KernelClassifier": {"max_features": 64, "seed": 1}}],
    [{"streamkernel.AdaptiveKernelClassifier": {"n_features": 32, "seed": 1}}],
    ["river.preprocessing.StandardScaler", {"streamkernel.AdaptiveKernelClassifier": {"n_features": 32, "seed": 1}}],
    [{"streamkernel.KernelNoveltyDetector": {"max_features": 64, "seed": 1}}],
    [{"streamkernel.KernelDensityRatio": {"p": True, "q": False, "max_features": 64, "seed": 1}}],
    refitted(),
]
NAMES = ["River's", "growing", "adaptive", "adaptive behind a scaler", "novelty", "density ratio", "refitted"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, launcher: Launcher) -> Home:
    """A run over the stream that nothing disturbs."""
    home = Home(tmp_path_factory.mktemp("undisturbed"))
    write_stream(home.folder / "stream.csv", RECORDS)
    home.configure()
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    return home


def test_the_stream_has_every_kind_of_record(undisturbed: Home) -> None:
    account = undisturbed.header()["account"]
    assert account["consumed"] == RECORDS
    assert account["learnt"] + account["unlabelled"] + account["skipped"] + account["dead"] == RECORDS
    assert min(account.values()) > 100


def test_thirty_kills_change_nothing(undisturbed: Home, home: Home, launcher: Launcher) -> None:
    (home.folder / "stream.csv").write_bytes((undisturbed.folder / "stream.csv").read_bytes())
    home.configure()
    draw = random.Random(30)
    for _ in range(30):
        # Of the records this process consumes: 600 on the average, so that thirty of them do not reach the end.
        count = draw.randint(1, 1200)
        status = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=f"consumed:{count}").returncode
        assert status == -signal.SIGKILL
    consumed = home.header()["account"]["consumed"]
    assert 0 < consumed < RECORDS
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    assert home.result() == undisturbed.result()


@pytest.mark.parametrize(
    ("point", "counts"),
    [
        ("mid-batch", (1, 9, 40)),
        ("checkpoint-writing", (1, 2, 5)),
        ("checkpoint-before-rename", (1, 2, 5)),
        ("checkpoint-after-rename", (1, 2, 5)),
    ],
)
def test_a_kill_at_a_named_point_changes_nothing(
    undisturbed: Home, home: Home, launcher: Launcher, point: str, counts: tuple[int, ...]
) -> None:
    (home.folder / "stream.csv").write_bytes((undisturbed.folder / "stream.csv").read_bytes())
    home.configure()
    for count in counts:
        status = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=f"{point}:{count}").returncode
        assert status == -signal.SIGKILL
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    assert home.result() == undisturbed.result()


@pytest.mark.parametrize("steps", PIPELINES, ids=NAMES)
def test_a_pipeline_that_is_killed_predicts_the_same(
    homes: Callable[[str], Home], launcher: Launcher, steps: list[object]
) -> None:
    results = []
    for name, kills in (
        ("undisturbed", []),
        ("killed", ["consumed:700", "mid-batch:2", "consumed:333", "consumed:1100"]),
    ):
        home = homes(name)
        write_stream(home.folder / "stream.csv", 3000)
        # The scaler takes no words: without the column of colours its records are learnt.
        source = {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"}
        home.configure(source=source, model=[{"river.compose.Discard": {"args": ["colour"]}}, *steps])
        for kill in kills:
            status = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=kill).returncode
            assert status == -signal.SIGKILL
        assert launcher.call(home, "run", "config.yaml").returncode == 0
        results.append(home.result()[1:])
    assert results[0] == results[1]
    assert results[0][2]["learnt"] > 2000


@pytest.mark.parametrize("model", ["KernelClassifier", "AdaptiveKernelClassifier"])
def test_a_seed_that_was_drawn_survives(
    homes: Callable[[str], Home], tmp_path: Path, launcher: Launcher, model: str
) -> None:
    home = homes("one")
    write_stream(home.folder / "stream.csv", 2000)
    home.configure(model=[f"streamkernel.{model}"])
    assert launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH="consumed:1").returncode == -signal.SIGKILL
    assert home.header()["account"]["consumed"] == 0
    twin = Home(tmp_path / "twin")
    shutil.copytree(home.folder, twin.folder)
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    for count in (10, 700, 444):
        status = launcher.call(twin, "run", "config.yaml", STREAMKERNEL_CRASH=f"consumed:{count}").returncode
        assert status == -signal.SIGKILL
    assert launcher.call(twin, "run", "config.yaml").returncode == 0
    assert twin.result() == home.result()


@pytest.mark.long
def test_kills_from_outside_at_any_moment_change_nothing(undisturbed: Home, home: Home) -> None:
    """The same with fresh interpreters and a SIGKILL that no point of the program chose."""
    (home.folder / "stream.csv").write_bytes((undisturbed.folder / "stream.csv").read_bytes())
    home.configure()
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
    assert home.call("run", "config.yaml").returncode == 0
    assert home.result() == undisturbed.result()
