"""A secret is shown nowhere, whoever writes it and however; what is none is shown as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, SecretStr

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.config.schema import Config
from streamkernel.daemon.config.secrets import Redactor, is_secret
from tests.daemon.conftest import Home, Launcher


def fields(annotation: Any, seen: set[Any]) -> Iterator[tuple[str, bool]]:
    """Every field of the schema, and whether it is a secret there."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
        seen.add(annotation)
        for name, one in annotation.model_fields.items():
            within = get_args(one.annotation)
            yield name, SecretStr in (one.annotation, *within, *(inner for part in within for inner in get_args(part)))
            yield from fields(one.annotation, seen)
    for part in get_args(annotation):
        yield from fields(part, seen)


def test_the_secrets_of_the_schema_are_those_that_are_hidden() -> None:
    found = set(fields(Config, set()))
    assert {"sasl_plain_password", "ssl_password", "password", "token"} == {name for name, secret in found if secret}
    assert [name for name, secret in found if is_secret(name) != secret] == []


@pytest.mark.parametrize("secret", ["hunter2", 'it\'s \\ "quoted"', "pä ß/w?d", "tab\there", "100%sure", "x y", "abc"])
def test_it_is_hidden_in_whichever_form_a_library_writes_it(secret: str) -> None:
    redact = Redactor({secret: "${PW}"})
    error = ValueError(secret, secret.encode())
    for text in (secret, repr(secret), json.dumps(secret), repr(error), f"b'\\x00user\\x00{secret}' failed"):
        told = redact(f"cannot log in: {text}.")
        assert secret not in told
        assert repr(secret)[1:-1] not in told
        assert "${PW}" in told


@pytest.mark.parametrize(
    "options",
    [
        "[{sasl_plain_password: hunter2}]",
        "{sasl_plain_password: [hunter2]}",
        "{sasl_plain_pasword: hunter2, proxy_url: [http://me:hunter2@proxy]}",
        "{proxy_url: 'http://me:hunter2@proxy', request_timeout_ms: 'http://me:hunter2@proxy'}",
    ],
)
def test_no_mistake_shows_it(tmp_path: Path, options: str) -> None:
    path = tmp_path / "config.yaml"
    source = f"{{kind: kafka, topic: t, bootstrap_servers: a, target: y, options: {options}}}"
    path.write_text(f"source: {source}\nmodel: [river.linear_model.LogisticRegression]")
    with pytest.raises(ConfigError) as caught:
        prepare(path)
    assert "hunter2" not in str(caught.value)


def test_an_ordinary_variable_is_shown_and_a_secret_is_not(here: Home, launcher: Launcher) -> None:
    (here.folder / "talking.py").write_text(
        "import os\n"
        "from river import dummy\n"
        "class Talking(dummy.PriorClassifier):\n"
        "    def predict_proba_one(self, x):\n        raise MemoryError(f\"{os.environ['PW']} and 1\".encode())\n"
    )
    here.configure(
        source={"kind": "csv", "path": "${PLACE}/stream.csv", "target": "y"},
        model=["talking.Talking"],
        imports=["talking"],
        limits={"max_string": "${ONE}00"},
        metrics={"port": 0, "basic_auth": {"username": "me", "password": "${PW}"}},
        log={"level": "debug"},
    )
    ended = launcher.call(here, "run", "config.yaml", PLACE=str(here.folder), PW="hunter2", ONE="1")
    assert ended.returncode == 1
    assert f"reading csv file {here.folder}/stream.csv from record 1 on" in ended.stderr
    assert "MemoryError: b'${PW} and 1'" in ended.stderr
    written = [path.read_bytes() for path in here.folder.rglob("*") if path.is_file()]
    for text in (ended.stdout.encode(), ended.stderr.encode(), *written):
        assert b"hunter2" not in text
