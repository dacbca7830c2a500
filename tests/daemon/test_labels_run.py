"""Late labels through a whole run: each record is predicted at once and learnt when its label comes, once."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
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
        monkeypatch.setattr(batch_size, "_MOST", most)
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


def followed(kind: str = "jsonl", **labels: Any) -> dict[str, Any]:
    made = sections(kind, **labels)
    for source in (made["source"], made["labels"]["source"]):
        source["follow"] = True
    return made


def append(path: Path, lines: list[str]) -> None:
    with path.open("a") as file:
        file.write("".join(line + "\n" for line in lines))


def wait_until(daemon: Any, home: Home, holds: Callable[[dict[str, Any]], bool]) -> None:
    for _ in range(3000):
        if holds(home.header()):
            return
        time.sleep(0.01)
    raise AssertionError(daemon.log)


class TestLive:
    """Files that grow: nobody waits for the other, and a stop is a stop."""

    def start(self, home: Home, launcher: Launcher, **labels: Any) -> Any:
        home.configure(**followed(**labels), model=MODELS["growing"])
        home.config.write_text(home.config.read_text().replace("every_records: 300", "every_seconds: 0.05"))
        for name in ("records.jsonl", "labels.jsonl"):
            (home.folder / name).touch()
        daemon = launcher.start(home, "run", "config.yaml")
        daemon.wait_for("from label 1 on")
        return daemon

    def test_a_silent_source_starves_nobody_and_labels_alone_are_saved(self, home: Home, launcher: Launcher) -> None:
        daemon = self.start(home, launcher)
        labels = [f'{{"id": {i}, "y": "{"pq"[i % 2]}"}}' for i in range(200)]
        append(home.folder / "records.jsonl", [f'{{"id": {i}, "a": {i}}}' for i in range(200)])
        wait_until(daemon, home, lambda header: header["labels"]["pending"] == 200)
        append(home.folder / "labels.jsonl", labels[:120])
        wait_until(daemon, home, lambda header: header["labels"]["account"]["matched"] == 120)
        append(home.folder / "labels.jsonl", labels[120:])
        wait_until(daemon, home, lambda header: header["labels"]["account"]["matched"] == 200)
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        assert home.header()["account"]["learnt"] == 200
        # Labels first, this time.
        append(home.folder / "labels.jsonl", [f'{{"id": {i}, "y": "p"}}' for i in range(200, 300)])
        daemon = launcher.start(home, "run", "config.yaml")
        wait_until(daemon, home, lambda header: header["labels"]["waiting"] == 100)
        append(home.folder / "records.jsonl", [f'{{"id": {i}, "a": {i}}}' for i in range(200, 300)])
        wait_until(daemon, home, lambda header: header["account"]["learnt"] == 300)
        daemon.signal(signal.SIGTERM)
        ended = daemon.wait()
        assert ended.returncode == 0
        assert "SIGTERM came; everything up to record 300 and label 300 is saved" in ended.stderr
        adds_up(home.header())

    def test_what_expires_is_counted_and_a_late_label_does_no_harm(self, home: Home, launcher: Launcher) -> None:
        daemon = self.start(home, launcher, timeout_seconds=0.2)
        append(home.folder / "records.jsonl", ['{"id": 1, "a": 1}', '{"id": 2, "a": 1}'])
        wait_until(daemon, home, lambda header: header["labels"]["pending"] == 2)
        time.sleep(0.3)
        append(home.folder / "labels.jsonl", ['{"id": 1, "y": "p"}', '{"id": 1, "y": "p"}'])
        wait_until(daemon, home, lambda header: header["labels"]["account"]["taken"] == 2)
        account = home.header()["labels"]["account"]
        assert (account["expired"], account["unmatched"], account["matched"]) == (2, 2, 0)
        daemon.signal(signal.SIGTERM)
        assert daemon.wait().returncode == 0
        assert home.header()["account"]["learnt"] == 0


MODEL = """
import os
from river import dummy

class Deadly(dummy.PriorClassifier):
    '''Dies over a label.'''

    def learn_one(self, x, y):
        if y == "die":
            os.abort()
        super().learn_one(x, y)
"""


def test_a_label_that_kills_the_process_is_found_and_the_others_are_learnt(home: Home, launcher: Launcher) -> None:
    (home.folder / "deadly.py").write_text(MODEL)
    append(home.folder / "records.jsonl", [f'{{"id": {i}, "a": {i}}}' for i in range(900)])
    labels = [f'{{"id": {i}, "y": "{"pq"[i % 2]}"}}' for i in range(900)]
    labels[413] = '{"id": 413, "y": "die"}'
    append(home.folder / "labels.jsonl", labels)
    home.configure(**sections(), model=["deadly.Deadly"], imports=["deadly"])
    statuses: list[int] = []
    while 0 not in statuses and len(statuses) < 10:
        statuses.append(launcher.call(home, "run", "config.yaml").returncode)
    # Once with its chunk, three times by itself; then it is tried in a child, and that dies too.
    assert statuses == [-signal.SIGABRT] * 4 + [0]
    (letter,) = home.lines("out/dead.jsonl")
    assert (letter["reason"], letter["raw"], letter["position"]["source"]) == ("kills_process", labels[413], "labels")
    header = home.header()
    adds_up(header)
    assert (header["account"]["learnt"], header["labels"]["pending"]) == (899, 1)
    assert len(home.lines("out/predictions.jsonl")) == 900


def test_an_early_label_the_model_refuses_is_a_dead_letter_when_its_record_comes(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.folder)
    append(home.folder / "labels.jsonl", [f'{{"id": "k{i}", "y": "{"pq"[i % 2]}"}}' for i in range(20)])
    append(home.folder / "labels.jsonl", ['{"id": "late one", "y": "third"}'])
    records = [f'{{"id": "k{i}", "a": {i}}}' for i in range(20)] + ["", "", "", '{"id": "late one", "a": 1}']
    append(home.folder / "records.jsonl", records)
    model = [{"streamkernel.KernelClassifier": {"seed": 1, "loss": {"streamkernel.losses.Log": {}}}}]
    run(prepare(home.configure(**sections(), model=model)))
    (letter,) = home.lines("out/dead.jsonl")
    assert letter["reason"] == "refused"
    assert letter["raw"] == '{"id": "late one", "y": "third"}'
    offset = (home.folder / "labels.jsonl").read_text().index('{"id": "late one"')
    assert letter["position"] == {"partition": 0, "offset": offset, "source": "labels"}
    header = home.header()
    adds_up(header)
    # The record was predicted, and waits for a label it can be learnt with.
    assert (header["account"]["predicted"], header["labels"]["pending"]) == (21, 1)


def test_labels_that_are_not_what_the_configuration_says_stop_it(home: Home, launcher: Launcher) -> None:
    write_pair(home.folder, "jsonl", 600, bad=False)
    made = sections(key="a")
    home.configure(**made)
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 1
    assert "of the last 1,000 labels were dead letters (the last one: key, there is no a to know" in ended.stderr


def test_what_waits_is_bounded_by_its_bytes(home: Home, launcher: Launcher) -> None:
    write_pair(home.folder, "jsonl", 600)
    home.configure(**sections(max_pending_bytes=6000))
    assert launcher.call(home, "run", "config.yaml", "--max-records", "500").returncode == 0
    adds_up(home.header())
    labels = home.header()["labels"]
    assert 20 < labels["pending"] < 60  # of some hundred bytes each, where 250 might wait
    assert labels["account"]["expired"] > 100
