"""configs/compose.yaml: Compose takes it, its services are confined, and what it mounts is valid for who reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamkernel.daemon.assembly.plan import prepare
from tests.deploy.programs import CONFIGS, ROOT, checked, needed_program

pytestmark = pytest.mark.usefixtures("processes")

FILE = CONFIGS / "compose.yaml"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file as Compose understands it, with its anchors and variables replaced."""
    program = needed_program("docker-compose", "docker-compose")
    text = checked(program, "--file", str(FILE), "config", GRAFANA_PASSWORD="secret")
    understood: dict[str, Any] = yaml.safe_load(text)
    return understood


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found


def mounts(service: dict[str, Any]) -> dict[str, str]:
    """What a service mounts, by its place there."""
    parts = [one.split(":") for one in service.get("volumes", [])]
    return {part[1]: part[0] for part in parts}


def test_the_password_must_be_given() -> None:
    program = needed_program("docker-compose", "docker-compose")
    with pytest.raises(AssertionError, match="a password for admin"):
        checked(program, "--file", str(FILE), "config", GRAFANA_PASSWORD="")


def test_nothing_is_reached_from_other_machines(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_service_has_rights_it_does_not_need(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service
        assert "user" not in service  # the images have users of their own, none of them root
        assert service.get("read_only", False) is (name not in {"kafka", "topics"}), name


def test_images_are_pinned_and_only_ours_is_built(services: dict[str, Any]) -> None:
    for name, service in services.items():
        ours = service["image"] == "streamkernel"
        assert ours or re.search(r":v?\d+\.\d+\.\d+$", service["image"]), name
        assert ("build" in service) is (name == "daemon")
    assert Path(services["daemon"]["build"]["context"]) == ROOT


def test_each_service_that_stays_is_asked_how_it_is(services: dict[str, Any]) -> None:
    asked = {
        name for name, service in services.items() if service.get("healthcheck", {}).get("test", ["NONE"]) != ["NONE"]
    }
    assert asked == {"kafka", "prometheus", "grafana"}  # the daemon as its image says
    waited = {name: service["depends_on"] for name, service in services.items() if "depends_on" in service}
    for name, others in waited.items():
        for other, how in others.items():
            able = {"service_healthy": {*asked, "daemon"}, "service_completed_successfully": {"topics"}}
            assert other in able[how["condition"]], (name, other)


def test_volumes_are_named_and_files_are_there(compose: dict[str, Any]) -> None:
    used = set()
    for service in compose["services"].values():
        for source in mounts(service).values():
            if source.startswith("/"):
                assert Path(source).exists(), source
            else:
                used.add(source)
    assert used == set(compose["volumes"])


def test_the_daemon_answers_where_the_others_ask(services: dict[str, Any]) -> None:
    (file,) = [source for source in mounts(services["daemon"]).values() if source.endswith(".yaml")]
    plan = prepare(Path(file), {})
    metrics = plan.config.metrics
    assert metrics is not None
    assert metrics.host == "0.0.0.0"
    assert services["daemon"]["ports"] == [f"127.0.0.1:{metrics.port}:{metrics.port}/tcp"]
    prometheus = yaml.safe_load((CONFIGS / "compose/prometheus.yml").read_text())
    (target,) = prometheus["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == f"daemon:{metrics.port}"
    assert metrics.allowed_hosts == ["daemon"]
    topics = {plan.raw[section]["topic"] for section in ("source", "predictions", "dead_letters")}
    made = re.search(r"for topic in (.+); do", services["topics"]["command"][-1])
    assert made
    assert set(made[1].split()) == topics
    assert plan.raw["source"]["topic"] in services["stream"]["command"]


def test_prometheus_finds_nothing_wrong_with_its_configuration(services: dict[str, Any], tmp_path: Path) -> None:
    promtool = needed_program("promtool", "prometheus")
    place = next(where for where in mounts(services["prometheus"]) if where.endswith("prometheus.yml"))
    text = Path(mounts(services["prometheus"])[place]).read_text()
    for where, source in mounts(services["prometheus"]).items():
        if "/rules/" in where:
            (tmp_path / Path(where).name).write_bytes(Path(source).read_bytes())
    file = tmp_path / "prometheus.yml"
    file.write_text(text.replace("/etc/prometheus/rules/", f"{tmp_path}/"))
    said = checked(promtool, "check", "config", str(file))
    assert "2 rule files found" in said


def test_grafana_is_given_prometheus_and_the_dashboards(services: dict[str, Any]) -> None:
    given = mounts(services["grafana"])
    (datasource,) = yaml.safe_load((CONFIGS / "compose/grafana/datasources.yaml").read_text())["datasources"]
    assert datasource["type"] == "prometheus"
    assert datasource["url"] == "http://prometheus:9090"
    assert "uid" not in datasource
    (provider,) = yaml.safe_load((CONFIGS / "compose/grafana/dashboards.yaml").read_text())["providers"]
    folder = Path(given[provider["options"]["path"]])
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (folder / Path(home).name).exists()
    assert sorted(one for one in given if "provisioning" in one) == [
        "/etc/grafana/provisioning/dashboards/streamkernel.yaml",
        "/etc/grafana/provisioning/datasources/streamkernel.yaml",
    ]
