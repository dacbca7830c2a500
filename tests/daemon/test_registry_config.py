"""What a configuration says about a schema registry: mistakes in one sentence each, and no secret in any."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamkernel.daemon.assembly.connectors import make_sink
from tests.daemon.configurations import GOOD, MODEL, lines_of, plan_of
from tests.registry.needs import needed

CA = Path(__file__).parent / "tls" / "certificate.pem"
URL = "url: 'https://registry:8081'"


def source(registry: str = "", value_format: str = "json_schema") -> str:
    given = f"schema_registry: {{{registry}}}" if registry else ""
    servers = "kind: kafka, topic: t, target: y, bootstrap_servers: a:1"
    return MODEL + f"source: {{{servers}, value_format: {value_format}, {given}}}\n"


def sink(registry: str, value_format: str = "json_schema") -> str:
    where = f"value_format: {value_format}, schema_registry: {{{URL}, {registry}}}"
    return GOOD + f"predictions: {{kind: kafka, topic: p, bootstrap_servers: a:1, {where}}}\n"


def test_a_mistake_is_one_line(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, line in [
        (source(URL, "json"), "source.value_format: must be avro, json_schema or protobuf with source.schema_registry"),
        (source(), "source.schema_registry: required with source.value_format: json_schema"),
        (source(URL, "avor"), "source.value_format: must be one of json, avro, json_schema, protobuf, got 'avor', did"),
        (source("url: 'registry:8081'"), "source.schema_registry.url: must be http:// or https:// with a host"),
        (source("url: 'https://a/?b'"), "source.schema_registry.url: must end with the path, without ? and #"),
        (
            source("url: 'https://me:pw@a'"),
            "source.schema_registry.url: must not contain a name and a password: set username",
        ),
        (
            source(f"{URL}, username: me"),
            "source.schema_registry.password: required with username",
        ),
        (
            source(f"{URL}, password: pw"),
            "source.schema_registry.username: required with password",
        ),
        (
            source(f"{URL}, username: me, password: pw, token: abc"),
            "source.schema_registry.token: must not be given with username, choose one",
        ),
        (
            source(f'{URL}, token: "a\\nb"'),
            "source.schema_registry.token: must not contain line ends or control characters",
        ),
        (source(f"{URL}, ssl_keyfile: /dev/null"), "source.schema_registry.ssl_certfile: required with ssl_keyfile"),
        (
            source(f"url: 'http://a', ssl_cafile: {CA}"),
            "source.schema_registry.url: must be https with ssl_cafile and ssl_certfile",
        ),
        (source(f"{URL}, ssl_cafile: /none"), "source.schema_registry.ssl_cafile: /none: cannot be read: No such"),
        (source(f"{URL}, message: m"), "source.schema_registry.message: works only with value_format protobuf"),
        (
            source(f"{URL}, descriptor_set: d", "protobuf"),
            "source.schema_registry.message: required with descriptor_set",
        ),
        (sink("on_unknown_schema: stop"), "predictions.schema_registry.on_unknown_schema: unknown key"),
        (
            sink("message: m", "protobuf"),
            "predictions.schema_registry.message: works only with use_latest_version: otherwise the lines have our",
        ),
    ]:
        with subtests.test(text=text, line=line):
            # Where the extra is not installed, that is a line of its own.
            found = [one for one in lines_of(tmp_path, text) if "pip install" not in one]
            assert [one.startswith(line) for one in found] == [True], found


def test_a_secret_is_in_no_line(tmp_path: Path) -> None:
    text = source(URL.replace("registry", "${SECRET}/?") + ", password: '${SECRET}'")
    assert "hunter2hunter2" not in str(lines_of(tmp_path, text, SECRET="hunter2hunter2"))


@pytest.mark.parametrize(("value_format", "library"), [("avro", "fastavro"), ("protobuf", "protobuf")])
def test_a_library_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value_format: str, library: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    monkeypatch.setitem(__import__("sys").modules, "google.protobuf", None)
    line = f"source: value_format {value_format} needs {library}: pip install 'streamkernel[registry]'"
    assert line in lines_of(tmp_path, source(URL, value_format))


@pytest.mark.parametrize("target_type", ["str", "int", "bool"])
def test_lines_have_the_schema_of_their_labels(tmp_path: Path, target_type: str) -> None:
    needed("fastavro")
    text = source(URL, "avro").replace("target: y", f"target: y, target_type: {target_type}")
    text += sink("", "avro").removeprefix(GOOD)
    plan = plan_of(tmp_path, text)
    made = make_sink(plan.config.predictions, "predictions", plan)
    kinds = {"str": "string", "int": "long", "bool": "boolean"}
    assert f'"name":"target","type":["null","{kinds[target_type]}"]' in made._encoder._own.text  # type: ignore[attr-defined]
