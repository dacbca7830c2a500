"""Late labels through a whole run: each record is predicted at once and learnt when its label comes, once."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import pytest

from streamkernel import KernelClassifier
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import batch_size
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher
from tests.daemon.labels_stream import adds_up, outcome, sections, write_pair

RECORDS = 6000
MODELS: dict[str, list[Any]] = {
    "adaptive": [{"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}],
    "growing": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
    "River's": [
        {"river.compose.Discard": {"args": ["colour"]}},
        "river.preprocessing.StandardScaler",
        "river.linear_model.LogisticRegression",
    ],
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, launcher: Launcher) -> Home:
    """A run over two files that nothing disturbs."""
    home = Home(tmp_path_factory.mktemp("undisturbed"))
    write_pair(home.folder, "jsonl", RECORDS)
    home.configure(**sections())
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 0, ended.stderr
    return home


@pytest.fixture
def copied(undisturbed: Home, home: Home) -> Home:
    """The same files, to be disturbed."""
    for name in ("records.jsonl", "labels.jsonl", "config.yaml"):
        (home.folder / name).write_bytes((undisturbed.folder / name).read_bytes())
    return home


def test_everything_that_can_be_is_in_the_account_and_adds_up(undisturbed: Home) -> None:
    header = undisturbed.header()
    adds_up(header)
    assert min(header["account"].values()) > 20
    assert min(header["labels"]["account"].values()) > 20
    assert header["labels"]["pending"] > 100
    assert header["labels"]["waiting"] > 0
    assert header["model"]["n_records"] == header["account"]["learnt"] > 0.7 * RECORDS


def test_each_record_has_one_prediction_and_no_label_line(undisturbed: Home) -> None:
    lines = undisturbed.lines("out/predictions.jsonl")
    assert len(lines) == undisturbed.header()["account"]["predicted"]
    offsets = [line["position"]["offset"] for line in lines]
    assert offsets == sorted(set(offsets))
    assert sum(line["target"] is not None for line in lines) < 0.1 * RECORDS


def test_a_dead_letter_says_whose_it_is_and_where_it_stands(undisturbed: Home) -> None:
    letters = undisturbed.lines("out/dead.jsonl")
    header = undisturbed.header()
    mine = [letter for letter in letters if letter["position"].get("source") == "labels"]
    assert len(mine) == header["labels"]["account"]["dead"]
    assert len(letters) - len(mine) == header["account"]["dead"]
    assert {letter["reason"] for letter in mine} == {"not_json", "key", "target"}
    text = (undisturbed.folder / "labels.jsonl").read_bytes()
    for letter in mine:
        assert text[letter["position"]["offset"] :].startswith(letter["raw"].encode())


def test_it_learns_what_a_loop_by_hand_learns(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.folder)
    write_pair(home.folder, "jsonl", 1000, bad=False)
    config = home.configure(**sections(max_pending=5000), model=MODELS["growing"])
    run(prepare(config))
    records, labels = ((home.folder / name).read_text().split("\n") for name in ("records.jsonl", "labels.jsonl"))
    model = KernelClassifier(seed=1, max_features=64)
    pending: dict[str, Any] = {}
    early: dict[str, str] = {}
    for line, late in zip_longest(records, labels, fillvalue=""):
        if line:
            record = json.loads(line)
            x = {name: value for name, value in record.items() if name not in ("id", "y") and value is not None}
            if record["id"] in early:
                model.learn_one(x, early.pop(record["id"]))
            else:
                pending[record["id"]] = x
        if late:
            label = json.loads(late)
            if label["id"] in pending:
                model.learn_one(pending.pop(label["id"]), label["y"])
            else:
                early[label["id"]] = label["y"]
    assert not early
    assert not pending
    assert home.header()["model"]["state_digest"] == model.state_digest()
    assert home.header()["account"]["learnt"] == 1000


@pytest.mark.parametrize("model", ["growing", "River's"])
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_the_length_of_the_chunks_changes_no_byte(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: str, model: str
) -> None:
    monkeypatch.chdir(home.folder)
    write_pair(home.folder, kind, 1200)
    home.configure(**sections(kind, target_type="bool", max_pending=120), model=MODELS[model])
    results, marks = [], []
    for most in (1, 7, 512):
        monkeypatch.setattr(batch_size, "MOST_RECORDS", most)
        view = run(prepare(home.config), fresh=True)
        results.append(outcome(home)[1:])
        marks.append({**view.overall, **view.rolling, "loss": view.loss})
    assert results[1:] == results[:1] * 2
    assert marks[1] == pytest.approx(marks[0], rel=1e-12)
    assert marks[2] == pytest.approx(marks[0], rel=1e-12)
    adds_up(home.header())


def test_a_run_in_pieces_ends_as_a_run_in_one(copied: Home, undisturbed: Home, launcher: Launcher) -> None:
    draw = random.Random(3)
    while copied.folder.joinpath("out").exists() is False or copied.header()["account"]["consumed"] < RECORDS - 1000:
        before = copied.header()["account"]["consumed"] if copied.folder.joinpath("out").exists() else 0
        most = draw.randint(300, 1500)
        assert launcher.call(copied, "run", "config.yaml", "--max-records", str(most)).returncode == 0
        assert copied.header()["account"]["consumed"] == before + most
        adds_up(copied.header())
    assert launcher.call(copied, "run", "config.yaml").returncode == 0
    assert outcome(copied) == outcome(undisturbed)


def test_thirty_kills_change_nothing(copied: Home, undisturbed: Home, launcher: Launcher) -> None:
    draw = random.Random(30)
    for _ in range(30):
        # Records and labels: 12,000 in all.
        count = draw.randint(1, 700)
        status = launcher.call(copied, "run", "config.yaml", STREAMKERNEL_CRASH=f"consumed:{count}").returncode
        assert status == -signal.SIGKILL
        adds_up(copied.header())
    assert 0 < copied.header()["account"]["consumed"] < RECORDS
    assert launcher.call(copied, "run", "config.yaml").returncode == 0
    assert outcome(copied) == outcome(undisturbed)


@pytest.mark.parametrize(
    ("point", "counts"),
    [
        ("mid-batch", (1, 5, 20)),
        ("checkpoint-writing", (1, 2, 5)),
        ("checkpoint-before-rename", (1, 2, 5)),
        ("checkpoint-after-rename", (1, 2, 5)),
    ],
)
def test_a_kill_at_a_named_point_changes_nothing(
    copied: Home, undisturbed: Home, launcher: Launcher, point: str, counts: tuple[int, ...]
) -> None:
    for count in counts:
        status = launcher.call(copied, "run", "config.yaml", STREAMKERNEL_CRASH=f"{point}:{count}").returncode
        assert status == -signal.SIGKILL
    assert launcher.call(copied, "run", "config.yaml").returncode == 0
    assert outcome(copied) == outcome(undisturbed)


@pytest.mark.parametrize(("kind", "model"), [("csv", "River's"), ("jsonl", "adaptive")])
def test_other_models_that_are_killed_end_the_same(
    homes: Callable[[str], Home], launcher: Launcher, kind: str, model: str
) -> None:
    results = []
    for name, kills in (("undisturbed", []), ("killed", ["consumed:900", "mid-batch:2", "consumed:333", "consumed:1"])):
        home = homes(name)
        write_pair(home.folder, kind, 1500)
        home.configure(**sections(kind, target_type="bool"), model=MODELS[model])
        for kill in kills:
            status = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=kill).returncode
            assert status == -signal.SIGKILL
        ended = launcher.call(home, "run", "config.yaml")
        assert ended.returncode == 0, ended.stderr
        results.append(outcome(home)[1:])  # the bytes of a pickle may differ
        assert home.header()["account"]["learnt"] > 1000
    assert results[0] == results[1]


def test_the_account_is_exact_where_time_decides_and_kills_interfere(copied: Home, launcher: Launcher) -> None:
    copied.configure(**sections(timeout_seconds=0.02))
    draw = random.Random(5)
    for _ in range(8):
        count = draw.randint(301, 900)
        status = launcher.call(copied, "run", "config.yaml", STREAMKERNEL_CRASH=f"consumed:{count}").returncode
        assert status == -signal.SIGKILL
        adds_up(copied.header())
    assert launcher.call(copied, "run", "config.yaml").returncode == 0
    header = copied.header()
    adds_up(header)
    assert header["labels"]["account"]["expired"] > 100
    assert header["model"]["n_records"] == header["account"]["learnt"]
    assert len(copied.lines("out/predictions.jsonl")) == header["account"]["predicted"]


def killed_from_outside(home: Home, start: Callable[[], Any], kills: int, seed: int) -> None:
    """Kill daemons at moments no point of the program chose."""
    draw = random.Random(seed)
    state = home.folder / "out/state"
    for _ in range(kills):
        daemon = start()
        before = set(state.glob("*.skc"))
        for _ in range(20_000):
            if set(state.glob("*.skc")) != before:
                break
            time.sleep(0.001)
        time.sleep(draw.random() * 0.05)
        daemon()


def test_kills_from_outside_change_nothing(copied: Home, undisturbed: Home, launcher: Launcher) -> None:
    def start() -> Callable[[], None]:
        daemon = launcher.start(copied, "run", "config.yaml")

        def kill() -> None:
            daemon.signal(signal.SIGKILL)
            daemon.wait()

        return kill

    killed_from_outside(copied, start, 6, seed=1)
    assert launcher.call(copied, "run", "config.yaml").returncode == 0
    assert outcome(copied) == outcome(undisturbed)


@pytest.mark.long
def test_kills_of_fresh_interpreters_change_nothing(copied: Home, undisturbed: Home) -> None:
    def start() -> Callable[[], None]:
        process = copied.start("run", "config.yaml")

        def kill() -> None:
            process.kill()
            process.communicate()

        return kill

    killed_from_outside(copied, start, 30, seed=7)
    assert copied.call("run", "config.yaml").returncode == 0
    assert outcome(copied) == outcome(undisturbed)
