"""Variables of the environment in a configuration: secrets and places, of which the secrets are shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.configurations import GOOD, MODEL, SOURCE, lines_of, plan_of


class TestEnvironment:
    """`${VAR}`: secrets and places come from the environment; secrets are shown nowhere."""

    def test_it_is_taken_in_values_and_stays_a_name_in_what_is_kept(self, tmp_path: Path) -> None:
        text = "source: {kind: csv, path: '${PLACE}/a.csv', target: y}\n" + MODEL
        plan = plan_of(tmp_path, text, PLACE="/data")
        assert plan.config.source.path == "/data/a.csv"  # type: ignore[union-attr]
        assert plan.raw["source"]["path"] == "${PLACE}/a.csv"
        assert plan.redact("cannot read /data/a.csv") == "cannot read /data/a.csv"

    def test_numbers_become_numbers(self, tmp_path: Path) -> None:
        text = f"""{SOURCE}
model: [{{streamkernel.KernelClassifier: {{seed: "${{SEED}}", regularization: "${{NU}}"}}}}]
metrics: {{port: "${{PORT}}"}}"""
        plan = plan_of(tmp_path, text, SEED="17", PORT="9999", NU="1e-5")
        assert (plan.model.seed, plan.model.regularization) == (17, 1e-5)  # type: ignore[union-attr]
        assert plan.config.metrics is not None
        assert plan.config.metrics.port == 9999

    def test_a_secret_of_digits_stays_a_text(self, tmp_path: Path) -> None:
        text = GOOD + "metrics: {basic_auth: {username: me, password: '${PASSWORD}'}}"
        plan = plan_of(tmp_path, text, PASSWORD="0123")
        assert plan.config.metrics is not None
        assert plan.config.metrics.basic_auth is not None
        assert plan.config.metrics.basic_auth.password.get_secret_value() == "0123"
        assert "0123" not in repr(plan.config)

    @pytest.mark.parametrize(
        "text", [GOOD + "mode: '${SECRET}'", GOOD + "metrics: {port: '${SECRET}'}", GOOD + "log: '${SECRET}'"]
    )
    def test_an_error_line_does_not_show_it(self, tmp_path: Path, text: str) -> None:
        (line,) = lines_of(tmp_path, text, SECRET="hunter2")
        assert "hunter2" not in line
        assert "${SECRET}" in line

    def test_what_is_no_variable_is_an_error(self, tmp_path: Path) -> None:
        assert lines_of(tmp_path, GOOD + "log: {level: '${9}'}") == [
            "log.level: '${9}' is not a variable: write ${NAME}"
        ]
        assert lines_of(tmp_path, GOOD + "mode: '${A'") == ["mode: '${A' is not a variable: write ${NAME}"]

    def test_yaml_is_never_made_of_it(self, tmp_path: Path) -> None:
        (line,) = lines_of(tmp_path, GOOD + "log: '${LOG}'", LOG="{level: debug}")
        assert line == "log: must be a mapping, got '${LOG}'"
