"""What a checkpoint with the right SHA-256 may say: it is used, refused in one sentence, or passed over."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.daemon import cli
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.checkpoints.file import FORMAT_VERSION, Checkpoint, read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.inspection import describe, description_lines
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.header import check_header
from streamkernel.daemon.runtime import run
from streamkernel.estimators.base import VERSION
from tests.daemon.conftest import Home, Launcher
from tests.daemon.test_checkpoint import sealed

GOLDEN = Path(__file__).parents[1] / f"golden/checkpoints-v{FORMAT_VERSION}"


def golden(case: str) -> Checkpoint:
    return read(next((GOLDEN / case / "state").glob("*.skc")))


HEADER = golden("kafka").header
Change = Callable[[dict[str, Any]], Any]


def put(path: str, value: Any) -> Change:
    """What replaces an entry of a header."""

    def change(header: dict[str, Any]) -> None:
        *way, last = path.split("/")
        for part in way:
            header = header[int(part)] if isinstance(header, list) else header[part]
        header[int(last) if isinstance(header, list) else last] = value  # type: ignore[index]

    return change


def changed(change: Change) -> dict[str, Any]:
    header = copy.deepcopy(HEADER)
    change(header)
    return header


class TestHeader:
    def test_what_every_golden_checkpoint_says_is_fine(self) -> None:
        for path in GOLDEN.glob("*/state/*.skc"):
            check_header(read(path).header)

    def test_an_entry_that_is_missing_is_named(self, subtests: pytest.Subtests) -> None:
        for name in sorted(HEADER):
            wanting = {key: value for key, value in HEADER.items() if key != name}
            with subtests.test(name=name), pytest.raises(CheckpointError, match=f"its header cannot be used: {name}"):
                check_header(wanting)

    def test_an_entry_that_is_wrong_is_named(self, subtests: pytest.Subtests) -> None:
        for path, value in [
            ("run/written", "NaN"),
            ("run/written", 1e300),
            ("run/written", True),
            ("run/mode", "both"),
            ("source/account", []),
            ("source/account", {}),
            ("source/account", {"consumed": 1, "predicted": 1, "learned": 1, "unlabeled": 0, "skipped": 0}),
            ("source/account/consumed", -1),
            ("source/account/consumed", 1.0),
            ("source/account/consumed", "7"),
            ("source/account/consumed", 2**63),
            ("source/account/consumed", 10**4000),
            ("source/recent_dead", [-1]),
            ("source/recent_dead", {"0": 1}),
            ("source/positions", {}),
            ("source/positions/0", ["a stream", 0]),
            ("source/positions/0", ["a stream", 0, -1]),
            ("source/positions/0", ["a stream", True, 1]),
            ("source/positions/0", [1, 0, 1]),
            ("source/positions/0", ["cluster/in/n1", 1, 1]),
            ("models/learners//inputs", ["a"]),
            ("models/learners//inputs", "0123456789abcde"),
            ("models/learners//inputs", "0123456789abcdef 6"),
            ("models/learners//inputs", "0123456789abcdeX"),
            ("replayed", {"records": []}),
            ("replayed", [["records", 0, 0]]),
            ("replayed", [["nobody", 0, 0, [1]]]),
            ("replayed", [["records", 0, -1, [1]]]),
            ("replayed", [["records", 0, 0, [1, True]]]),
            ("replayed", [["labels", 0, 0, [2**70]]]),
            ("outputs", []),
            ("outputs/predictions", None),
            ("outputs/predictions/path", "a\0b"),
            ("outputs/predictions/path", "\ud800"),
            ("outputs/predictions/mark", -7),
            ("outputs/predictions/mark", True),
            ("outputs/predictions/mark", "7"),
            ("outputs/predictions/mark", [7]),
            ("outputs/predictions/mark", {"length": -7}),
            ("outputs/predictions/mark", {"length": "7"}),
            ("outputs/predictions/mark", {"other": 10**30}),
            ("outputs/predictions/mark/committed", -1),
            ("outputs/predictions/mark/number", True),
            ("outputs/predictions/mark/lines", 7),
            ("source", {}),
            ("source/config", None),
            ("models/learners//model", []),
            ("models/learners//model/expert_weights", {"a": "0.5"}),
            ("run/versions", {}),
            ("run/versions/river", 1),
            ("labels", {"pending": 3}),
            ("labels", {"pending": 3, "config": {"key": "id"}}),
            ("labels", {"pending": 3, "config": {"key": "id", "source": {}}}),
            ("payload", {"models": -1}),
        ]:
            with subtests.test(path=path, value=value):
                with pytest.raises(CheckpointError, match=r"its header cannot be used: (\w|/)+") as caught:
                    check_header(changed(put(path, value)))
                assert path.partition("/")[0] in str(caught.value)
                assert "\n" not in str(caught.value)
                assert not isinstance(caught.value, UnfitError)

    def test_a_count_of_a_later_version_is_no_reason_to_fall_back(self) -> None:
        with pytest.raises(UnfitError, match="counts 'sworn', which this streamkernel does not: update it"):
            check_header(changed(put("source/account/sworn", 3)))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a header."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*before, key)
            yield from paths(item, (*before, key))


CASES = {case: golden(case) for case in ("growing", "river", "late-labels", "kafka")}
PLACES = {case: list(paths(checkpoint.header)) for case, checkpoint in CASES.items()}


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    found = {}
    for case in CASES:
        with contextlib.chdir(GOLDEN / case):
            found[case] = prepare(Path("config.yaml"))
    return found


class Contents(bytes):
    """The bytes of a file, too many to be shown: a warning of hypothesis, which is an error, says so."""

    def __repr__(self) -> str:
        return f"<{len(self):,} bytes>"


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A golden checkpoint with something else in its header or payload, and the right sum."""
    case = draw(st.sampled_from(sorted(CASES)))
    header, payload = copy.deepcopy(CASES[case].header), CASES[case].payload
    for place in draw(st.lists(st.sampled_from(PLACES[case]), max_size=2)):
        part: Any = header
        with contextlib.suppress(LookupError, TypeError):  # a change before took the place away
            for key in place[:-1]:
                part = part[key]
            if draw(st.booleans()) and isinstance(part, dict):
                part.pop(place[-1], None)
            else:
                part[place[-1]] = draw(ANYTHING)
    for at, extra, cut in draw(
        st.lists(st.tuples(st.integers(0, len(payload)), st.binary(max_size=4), st.integers(0, 4)), max_size=3)
    ):
        payload = payload[:at] + extra + payload[at + cut :]
    head = {"number": 0, "payload_length": len(payload), "header": header}
    return case, Contents(sealed(json.dumps(head).encode(), payload))


@given(mutated())
def test_a_forged_checkpoint_is_used_or_refused_in_one_sentence(
    plans: dict[str, Plan], tmp_path: Path, made: tuple[str, bytes]
) -> None:
    case, data = made
    path = tmp_path / "checkpoint-000000000000.skc"
    path.write_bytes(data)
    why = ""
    try:
        resume.restore(plans[case], read(path))
    except CheckpointError as error:
        why = str(error)
    assert "\n" not in why
    assert len(why) < 3000
    with contextlib.suppress(CheckpointError):
        description_lines(describe(path), 80, every=True)
        description_lines(describe(tmp_path), 80, every=True)


class TestPassedOver:
    """A checkpoint whose contents are refused is one the daemon does without; one that does not fit is not."""

    def forge(self, home: Home, header: Change = lambda _: None, payload: Callable[[bytes], bytes] = bytes) -> Path:
        newest = read(sorted((home.folder / "out/state").glob("*.skc"))[-1])
        changed = copy.deepcopy(newest.header)
        header(changed)
        store = CheckpointStore(home.folder / "out/state", keep=9)
        store.lock()
        path = store.write(changed, payload(newest.payload))
        store.close()
        return path

    @pytest.mark.parametrize(
        ("header", "payload", "why"),
        [
            (
                put("source/account", {}),
                bytes,
                "its header cannot be used: source.account: the count 'consumed' is missing",
            ),
            (put("outputs/predictions/mark", {"stream": "s"}), bytes, "its header cannot be used: outputs.predictions"),
            (lambda _: None, lambda data: data[:-8], "its components do not take the"),
            (lambda _: None, lambda data: data[8:] + data[:8], "the payload cannot be restored"),
        ],
    )
    def test_one_whose_contents_are_refused(
        self, trained: Home, caplog: pytest.LogCaptureFixture, header: Change, payload: Any, why: str
    ) -> None:
        forged = self.forge(trained, header, payload)
        run(prepare(trained.config), max_records=50)
        assert trained.header()["source"]["account"]["consumed"] == 650
        assert f"{forged.name}: {why}" in caplog.text
        assert f"renamed to {forged.name}.invalid, the next older checkpoint is tried" in caplog.text

    @pytest.mark.parametrize(
        ("reads", "way"), [(VERSION + 1, "learn the model again"), (VERSION - 1, "update streamkernel")]
    )
    def test_a_state_of_another_version_is_not_passed_over(
        self, trained: Home, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, reads: int, way: str
    ) -> None:
        monkeypatch.setattr("streamkernel.estimators.base.VERSION", reads)
        before = sorted((trained.folder / "out/state").glob("checkpoint-*"))
        assert cli.main(["run", "config.yaml"]) == 1
        said = f"{before[-1].name}: this state has version {VERSION}, this streamkernel reads {reads}: {way}\n"
        assert said in capfd.readouterr().err
        assert sorted((trained.folder / "out/state").glob("checkpoint-*")) == before

    def test_check_says_what_a_run_would_do_and_changes_nothing(self, trained: Home, launcher: Launcher) -> None:
        forged = self.forge(trained, put("source/account", {}))
        before = sorted((trained.folder / "out/state").glob("checkpoint-*"))
        done = launcher.call(trained, "check", "config.yaml")
        assert done.returncode == 0
        assert f"{forged.name}: its header cannot be used" in done.stderr
        assert "record 600" in done.stdout
        assert sorted((trained.folder / "out/state").glob("checkpoint-*")) == before


UNSAVABLE = """
from river import dummy

class Unsavable(dummy.PriorClassifier):
    '''Holds something no checkpoint can hold from the 300th record on.'''

    def learn_one(self, x, y):
        super().learn_one(x, y)
        self.taken = getattr(self, "taken", 0) + 1
        if self.taken > 300:
            self.held = lambda: None
"""


class TestUnsavable:
    """What cannot be read back is not written."""

    def test_the_daemon_ends_in_one_sentence_and_keeps_what_there_is(self, home: Home, launcher: Launcher) -> None:
        (home.folder / "unsavable.py").write_text(UNSAVABLE)
        (home.folder / "stream.csv").write_text("a,y\n" + "1,p\n2,q\n" * 400)
        home.configure(
            model=["unsavable.Unsavable"],
            imports=["unsavable"],
            checkpoint={"directory": "out/state", "every_records": 200},
        )
        for _ in range(2):  # again and again, and no worse
            ended = launcher.call(home, "run", "config.yaml")
            assert ended.returncode == 1
            assert "the model holds" in ended.stderr
            assert "everything up to record 200 is saved: a restart continues there" in ended.stderr
            assert "Traceback" not in ended.stderr
            assert home.header()["source"]["account"]["consumed"] == 200

    @pytest.mark.usefixtures("processes")
    def test_it_counts_as_a_checkpoint_that_failed(self, here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        failures = []
        monkeypatch.setattr(Exporter, "failed", lambda _: failures.append(1))
        written = CheckpointStore.write

        def refusing(store: CheckpointStore, header: Any, payload: bytes) -> Path:
            if header["source"]["account"]["consumed"]:
                raise CheckpointError("cannot be read back")
            return written(store, header, payload)

        monkeypatch.setattr(CheckpointStore, "write", refusing)
        with pytest.raises(CheckpointError, match="cannot be read back"):
            run(prepare(here.configure(metrics={"port": 0})))
        assert failures == [1]

    def test_a_model_that_could_not_be_restored_is_known_before_it_learns(self, here: Home) -> None:
        # The reader bounds what the compiled parts of River make room for.
        detector = {"river.drift.ADWIN": {"clock": 2_000_000}}
        tree = {"river.tree.HoeffdingAdaptiveTreeClassifier": {"seed": 1, "drift_detector": detector}}
        with pytest.raises(CheckpointError, match="gives AdaptiveWindowing a value of the wrong kind"):
            run(prepare(here.configure(model=[tree])))
        assert not list((here.folder / "out/state").glob("*.skc"))
