"""An output is no file that the configuration speaks of under another name, or that the daemon keeps; lost paths."""

from __future__ import annotations

import os
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.config.problems import ConfigError
from tests.daemon.conftest import Home, Launcher
from tests.daemon.outputs import SOURCE, configured, predictions, with_short_stream


@pytest.fixture
def home(home: Home) -> Home:
    return with_short_stream(home)


class TestOneFileUnderTwoNames:
    """What is read is never written to, by whatever name: status 2, before anything is touched."""

    @pytest.mark.parametrize("key", ["predictions", "dead_letters"])
    @pytest.mark.parametrize("name", ["./stream.csv", "out/../stream.csv", "symbolic", "hard", "through/stream.csv"])
    def test_the_source(self, home: Home, key: str, name: str) -> None:
        self.link(home)
        configured(home, **{key: predictions(name, existing="replace")})
        with pytest.raises(ConfigError) as caught:
            prepare(home.config)
        assert caught.value.lines == [f"{key}.path: must differ from source.path, they are the same file"]

    def test_the_status_is_2_and_nothing_was_touched(self, home: Home, launcher: Launcher) -> None:
        self.link(home)
        before = (home.folder / "stream.csv").read_bytes()
        configured(home, predictions=predictions("hard", existing="replace"))
        for command in (["check", "config.yaml"], ["run", "config.yaml", "--fresh"]):
            ended = launcher.call(home, *command)
            assert ended.returncode == 2
            assert ended.stderr == "predictions.path: must differ from source.path, they are the same file\n"
        assert (home.folder / "stream.csv").read_bytes() == before
        assert not (home.folder / "out/state").exists()

    def link(self, home: Home) -> None:
        (home.folder / "out").mkdir()
        (home.folder / "symbolic").symlink_to("stream.csv")
        (home.folder / "hard").hardlink_to("stream.csv")
        (home.folder / "through").symlink_to(".")

    @pytest.mark.parametrize(
        ("sections", "said"),
        [
            (
                {"dead_letters": predictions("./out/predictions.jsonl")},
                "dead_letters.path: must differ from predictions",
            ),
            (
                {"predictions": predictions("config.yaml")},
                "predictions.path: must differ from the configuration itself",
            ),
            ({"predictions": predictions("out/state")}, "predictions.path: must differ from checkpoint.directory"),
            ({"predictions": predictions("./out/state/lock")}, "predictions.path: must not be a file that the daemon"),
            ({"predictions": predictions("out/state/order.log")}, "predictions.path: must not be a file that the"),
            ({"predictions": predictions("link-to-lock")}, "predictions.path: must not be a file that the daemon"),
            (
                {"metrics": {"tls": {"certificate": "c.pem", "key": "k.pem"}}, "predictions": predictions("./k.pem")},
                "predictions.path: must differ from metrics.tls.key",
            ),
            (
                {
                    "labels": {"source": {**SOURCE, "path": "late.csv"}, "key": "id"},
                    "predictions": predictions("late.csv"),
                },
                "predictions.path: must differ from labels.source.path",
            ),
            (
                {
                    "source": {**SOURCE, "path": "to-come.csv", "follow": True},
                    "predictions": predictions("link-to-come"),
                },
                "predictions.path: must differ from source.path",
            ),
        ],
    )
    def test_all_else_that_is_read(self, home: Home, sections: dict[str, Any], said: str) -> None:
        (home.folder / "link-to-come").symlink_to("to-come.csv")
        state = home.folder / "out/state"
        state.mkdir(parents=True)
        (state / "lock").touch()
        (home.folder / "link-to-lock").hardlink_to(state / "lock")
        configured(home, **sections)
        with pytest.raises(ConfigError) as caught:
            prepare(home.config)
        assert [line for line in caught.value.lines if line.startswith(said)], caught.value.lines

    def test_standard_input_and_output(self, home: Home) -> None:
        for source, output, command in (
            ("-", "stream.csv", "run config.yaml < stream.csv"),
            ("stream.csv", "-", "run config.yaml >> stream.csv"),
        ):
            configured(home, source={**SOURCE, "path": source}, predictions=predictions(output, existing="replace"))
            before = (home.folder / "stream.csv").read_bytes()
            reading, writing = (
                (os.open("stream.csv", os.O_RDONLY) if source == "-" else os.open(os.devnull, os.O_RDONLY)),
                os.open("stream.csv" if output == "-" else os.devnull, os.O_WRONLY | os.O_APPEND),
            )
            saved = os.dup(0), os.dup(1)
            os.dup2(reading, 0)
            os.dup2(writing, 1)
            try:
                with pytest.raises(ConfigError, match=r"predictions\.path: must differ from source\.path"):
                    prepare(home.config)
            finally:
                for number, descriptor in enumerate(saved):
                    os.dup2(descriptor, number)
                for descriptor in (reading, writing, *saved):
                    os.close(descriptor)
            assert (home.folder / "stream.csv").read_bytes() == before, command
