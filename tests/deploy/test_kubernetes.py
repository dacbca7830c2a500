"""The manifests for Kubernetes: valid by its schemas, confined, and asked as the daemon answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from streamkernel.daemon.assembly.plan import prepare
from tests.deploy.programs import CONFIGS, checked, needed_program

pytestmark = pytest.mark.usefixtures("processes")

FOLDER = CONFIGS / "kubernetes"
# The oldest that is still maintained where clusters lag behind, and the newest that the package has.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]


def manifest(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return loaded


KUSTOMIZATION = manifest("kustomization.yaml")


def strictly_valid(resource: dict[str, Any]) -> None:
    for version in VERSIONS:
        kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.parametrize("name", KUSTOMIZATION["resources"])
def test_a_manifest_is_valid(name: str) -> None:
    strictly_valid(manifest(name))


def test_what_kustomize_makes_is_valid(tmp_path: Path) -> None:
    kubectl = needed_program("kubectl", "kubernetes-client")
    made = list(yaml.safe_load_all(checked(kubectl, "kustomize", str(FOLDER), HOME=str(tmp_path))))
    for resource in made:
        strictly_valid(resource)
    by_kind = {resource["kind"]: resource for resource in made}
    assert by_kind.keys() == {"ConfigMap", "Service", "StatefulSet"}
    pod = by_kind["StatefulSet"]["spec"]["template"]["spec"]
    names = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    assert names == [by_kind["ConfigMap"]["metadata"]["name"]]
    (image,) = KUSTOMIZATION["images"]
    wanted = f"{image['newName']}:{image['newTag']}"
    assert {container["image"] for container in pod["containers"] + pod["initContainers"]} == {wanted}


class TestPod:
    """The pod, the container in it, and what the image and the configuration have to do with them."""

    stateful_set = manifest("statefulset.yaml")["spec"]
    pod = stateful_set["template"]["spec"]
    container = pod["containers"][0]

    def test_it_may_do_nothing_but_run(self) -> None:
        assert self.pod["automountServiceAccountToken"] is False
        security = self.pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert f"USER {security['runAsUser']}:{security['runAsGroup']}\n" in (CONFIGS.parent / "Dockerfile").read_text()
        for container in (*self.pod["containers"], *self.pod["initContainers"]):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"].keys() == {"memory"}

    def test_the_daemon_has_the_time_to_end(self) -> None:
        assert self.pod["terminationGracePeriodSeconds"] >= 15

    def test_probes_ask_the_port_of_the_configuration(self) -> None:
        plan = prepare(FOLDER / "streamkernel.yaml", {})
        assert plan.config.metrics is not None
        assert plan.config.metrics.host == "0.0.0.0"
        (port,) = self.container["ports"]
        assert port == {"name": "metrics", "containerPort": plan.config.metrics.port}
        asked = {
            probe: self.container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        assert asked == {
            "startupProbe": {"path": "/healthz", "port": "metrics"},
            "livenessProbe": {"path": "/healthz", "port": "metrics"},
            "readinessProbe": {"path": "/readyz", "port": "metrics"},
        }
        scraped = self.stateful_set["template"]["metadata"]["annotations"]
        assert scraped["prometheus.io/port"] == str(plan.config.metrics.port)

    def test_checkpoints_are_on_its_volume(self) -> None:
        plan = prepare(FOLDER / "streamkernel.yaml", {})
        assert plan.config.checkpoint is not None
        (claim,) = self.stateful_set["volumeClaimTemplates"]
        kept = [one["mountPath"] for one in self.container["volumeMounts"] if one["name"] == claim["metadata"]["name"]]
        assert any(Path(plan.config.checkpoint.directory).is_relative_to(place) for place in kept)
