"""What a daemon goes on from."""

from __future__ import annotations

from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.check import check
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home, write_stream


class TestWhatItGoesOnFrom:
    """A checkpoint that does not fit is refused, with the difference; what does not touch the model is taken."""

    @pytest.mark.parametrize(
        ("sections", "difference"),
        [
            (
                {"model": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 512}}]},
                "model[0].max_features: checkpoint has 256, configuration says 512",
            ),
            (
                {"model": ["river.linear_model.LogisticRegression"]},
                "the checkpoint holds another model than the configuration",
            ),
            (
                {"source": {"kind": "csv", "path": "stream.csv", "target": "color"}},
                "source.target is 'y' in the checkpoint and 'color' in the configuration",
            ),
            (
                {"source": {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"}},
                "source.target_type is 'str' in the checkpoint and 'bool' in the configuration",
            ),
            (
                {"source": {"kind": "csv", "path": "-", "target": "y"}},
                "source.path is a file in the checkpoint and standard input in the configuration",
            ),
            (
                {"source": {"kind": "river", "dataset": "Phishing"}},
                "source.kind is 'csv' in the checkpoint and 'river' in the configuration",
            ),
        ],
    )
    def test_another_model_or_source_is_refused(self, trained: Home, sections: dict[str, Any], difference: str) -> None:
        before = trained.result()
        (bad,) = check(prepare(trained.configure(**sections))).bad
        with pytest.raises(UnfitError) as caught:
            run(prepare(trained.config))
        assert difference in str(caught.value)
        assert difference in bad
        assert "\n" not in str(caught.value)
        assert trained.result() == before

    def test_an_older_state_is_that_of_the_checkpoints_that_stay(self, here: Home) -> None:
        run(prepare(here.config))
        whole = here.result()
        *_, newest = sorted((here.folder / "out/state").glob("*.skc"))
        newest.unlink()
        assert here.header()["source"]["account"]["consumed"] < 400
        run(prepare(here.config))
        assert here.result() == whole

    def test_a_default_that_is_written_out_is_no_difference(self, trained: Home) -> None:
        source = {"kind": "csv", "path": "stream.csv", "target": "y", "delimiter": ",", "encoding": "utf-8"}
        model = [{"streamkernel.KernelClassifier": {"max_features": 256, "seed": 1, "max_inputs": 10_000}}]
        run(prepare(trained.configure(source=source, model=model)))
        assert trained.header()["source"]["account"]["consumed"] == 1000

    @pytest.mark.usefixtures("processes")
    def test_other_ports_outputs_and_intervals_are_taken(self, trained: Home) -> None:
        predicted = trained.header()["source"]["account"]["predicted"]
        config = trained.configure(
            predictions={"kind": "csv", "path": "out/other.csv"},
            dead_letters={"kind": "none"},
            checkpoint={"directory": "out/state", "every_records": 77, "every_seconds": 5, "keep": 1},
            metrics={"port": 0},
            log={"level": "debug", "format": "json"},
        )
        run(prepare(config))
        header = trained.header()
        assert header["source"]["account"]["consumed"] == 1000
        assert len(trained.lines("out/predictions.jsonl")) == predicted  # the old file is left as it was
        rows = (trained.folder / "out/other.csv").read_text().splitlines()
        assert rows[0] == "position,prediction,target,probabilities"
        assert len(rows) == 1 + header["source"]["account"]["predicted"] - predicted

    def test_a_file_that_moved_is_taken_and_one_that_was_replaced_is_refused(self, trained: Home) -> None:
        (trained.folder / "stream.csv").rename(trained.folder / "moved.csv")
        source = {"kind": "csv", "path": "moved.csv", "target": "y"}
        run(prepare(trained.configure(source=source)), max_records=100)
        assert trained.header()["source"]["account"]["consumed"] == 700
        write_stream(trained.folder / "moved.csv", 400, seed=1)
        with pytest.raises(Exception, match=r"moved\.csv: "):
            run(prepare(trained.config))
        assert trained.header()["source"]["account"]["consumed"] == 700

    def with_versions(self, here: Home, **versions: str) -> None:
        checkpoint = read(sorted((here.folder / "out/state").glob("*.skc"))[-1])
        store = CheckpointStore(here.folder / "out/state")
        store.lock()
        run = checkpoint.header["run"]
        header = {**checkpoint.header, "run": {**run, "versions": {**run["versions"], **versions}}}
        store.write(header, checkpoint.payload)
        store.close()

    def test_another_minor_version_is_loaded_with_a_warning(
        self, trained: Home, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.with_versions(trained, river="0.1.7", streamkernel="0.999.0")
        run(prepare(trained.config), max_records=100)
        assert "written with river 0.1.7" in caplog.text
        assert "written with streamkernel 0.999.0" in caplog.text
        assert trained.header()["source"]["account"]["consumed"] == 700

    @pytest.mark.parametrize("library", ["river", "streamkernel"])
    def test_another_major_version_is_refused(self, trained: Home, library: str) -> None:
        self.with_versions(trained, **{library: "77.1.0"})
        with pytest.raises(
            CheckpointError, match=rf"written with {library} 77\.1\.0.*install {library} 77\.1\.0, or start"
        ):
            run(prepare(trained.config))

    def test_what_the_environment_gave_is_not_kept(self, here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STREAM_FILE", "stream.csv")
        monkeypatch.setenv("OUT", "secret-place")
        source = {"kind": "csv", "path": "${STREAM_FILE}", "target": "y"}
        run(prepare(here.configure(source=source, predictions={"kind": "jsonl", "path": "${OUT}/p.jsonl"})))
        assert (here.folder / "secret-place/p.jsonl").exists()
        for path in (here.folder / "out/state").glob("*.skc"):
            assert b"secret-place" not in path.read_bytes()
