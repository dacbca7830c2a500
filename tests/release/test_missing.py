"""Without an extra, the command says in one sentence what to install."""

import runpy
import sys

import pytest

from streamkernel.daemon.cli.program import main
from tests.importing import import_again


def test_the_command_without_the_daemon_s_libraries(monkeypatch, capsys):
    import_again(monkeypatch, "streamkernel.daemon.cli")
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        runpy.run_module("streamkernel", run_name="__main__")
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "streamkernel: the command needs typer, which is not installed: pip install 'streamkernel[daemon]'\n"
    )


def test_a_topic_without_its_client(monkeypatch, capsys, tmp_path):
    import_again(monkeypatch, "streamkernel.connectors.kafka.reading")
    monkeypatch.setitem(sys.modules, "kafka", None)
    config = tmp_path / "topic.yaml"
    config.write_text(
        "source: {kind: kafka, bootstrap_servers: 'b:9092', topic: t, target: y}\n"
        "model: [streamkernel.AdaptiveKernelClassifier: {}]\n"
    )
    assert main(["check", str(config)]) == 2
    assert (
        "source.kind: kafka needs libraries that are not installed: pip install 'streamkernel[kafka]'"
        in capsys.readouterr().err
    )
