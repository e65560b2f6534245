"""The files of `deploy/` agree with the command, the configuration, and with each other.

No container is started: images and orchestrators are not part of the tests. NATS and HAProxy themselves check their
configurations, and ``kubernetes-validate`` (a package of 100 MB) the manifests, where they are installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from jumpseat.cli.arguments import parse
from jumpseat.cluster.nats.settings import cluster_settings
from jumpseat.config import StoreConfig, load_config
from jumpseat.options import Options
from tests.support.nats import nats_server

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: Final[dict[str, Any]] = COMPOSE["services"]
MANIFESTS: Final[list[dict[str, Any]]] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
NATS_CONF: Final = (DEPLOY / "nats.conf").read_text()
REPLICAS: Final = sorted(name for name in SERVICES if name.startswith("replica-"))
NATS: Final = sorted(name for name in SERVICES if name.startswith("nats-"))


def manifest(kind: str, name: str) -> dict[str, Any]:
    (found,) = (one for one in MANIFESTS if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


def pod(kind: str, name: str) -> dict[str, Any]:
    return manifest(kind, name)["spec"]["template"]["spec"]


def container(kind: str, name: str) -> dict[str, Any]:
    (found,) = pod(kind, name)["containers"]
    return found


def store(tmp_path: Path) -> StoreConfig:
    shutil.copy(DEPLOY / "config.toml", tmp_path)
    return load_config(tmp_path).store


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def commands() -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Yield each place where a replica is started, with its arguments and the names of its variables."""
    for name in REPLICAS:
        yield name, SERVICES[name]["command"], SERVICES[name]["environment"]
    deployed = container("Deployment", "jumpseat")
    yield "kubernetes", deployed["args"], [variable["name"] for variable in deployed["env"]]


def options() -> list[Options]:
    return [parse(arguments, {}) for _, arguments, _ in commands()]


def test_every_replica_is_started_with_options_of_the_command() -> None:
    assert len(options()) == 4
    for one in options():
        assert one.tcp is not None
        assert one.tcp.port == 4321
        assert one.tcp.tls is not None
        # `jumpseat status` is the probe.
        assert one.metrics_port == 9464


def test_every_replica_has_the_variables_that_its_configuration_names(tmp_path: Path) -> None:
    config = store(tmp_path)
    assert config.token_env is not None
    for place, _, variables in commands():
        assert config.token_env in variables, place
        # Tokens of people are in the home of one replica.
        assert "COPILOT_CONNECTION_TOKEN" in variables, place


def test_the_configuration_names_all_servers_of_nats(tmp_path: Path) -> None:
    settings = cluster_settings(store(tmp_path), {"NATS_TOKEN": "secret"})
    copies = manifest("StatefulSet", "nats")["spec"]["replicas"]
    assert settings.copies == copies == len(NATS)
    assert settings.token == "secret"
    addresses = [f"nats://nats-{number}.nats:4222" for number in range(copies)]
    assert list(settings.servers) == addresses
    # In Kubernetes, the names are those of the pods and the headless service; in compose, aliases.
    assert manifest("Service", "nats")["spec"]["clusterIP"] == "None"
    assert manifest("StatefulSet", "nats")["spec"]["serviceName"] == "nats"
    aliases = [alias for name in NATS for alias in SERVICES[name]["networks"]["default"]["aliases"]]
    assert [f"nats://{alias}:4222" for alias in aliases] == addresses


def test_nats_accepts_its_configuration_and_syncs_each_message(tmp_path: Path) -> None:
    for number in range(3):
        environ = {**os.environ, "NATS_NAME": f"nats-{number}", "NATS_TOKEN": "secret"}
        text = NATS_CONF.replace("store_dir: /data", f'store_dir: "{tmp_path}"')
        (tmp_path / "nats.conf").write_text(text)
        command = [nats_server(), "-t", "-c", str(tmp_path / "nats.conf")]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert re.search(r"^  sync_interval: always$", NATS_CONF, re.MULTILINE)
    routes = re.findall(r"nats://(nats-\d\.nats):6222", NATS_CONF)
    assert routes == [f"nats-{number}.nats" for number in range(3)]


def test_the_servers_of_nats_are_of_the_version_that_the_tests_run() -> None:
    told = subprocess.run([nats_server(), "--version"], capture_output=True, text=True, check=True).stdout
    tested = told.strip().rpartition("v")[2].rpartition(".")[0]
    images = {SERVICES[name]["image"] for name in NATS} | {container("StatefulSet", "nats")["image"]}
    assert images == {f"docker.io/library/nats:{tested}-alpine"}


def test_every_replica_has_the_time_to_drain(tmp_path: Path) -> None:
    drain_s = store(tmp_path).drain_s
    for name in REPLICAS:
        assert seconds(SERVICES[name]["stop_grace_period"]) > drain_s + 10
    assert pod("Deployment", "jumpseat")["terminationGracePeriodSeconds"] > drain_s + 10
    lame_duck = re.search(r"lame_duck_duration: (\d+)s", NATS_CONF)
    assert lame_duck is not None
    for name in NATS:
        assert SERVICES[name]["stop_signal"] == "SIGUSR2"
        assert seconds(SERVICES[name]["stop_grace_period"]) > int(lame_duck[1])
    assert pod("StatefulSet", "nats")["terminationGracePeriodSeconds"] > int(lame_duck[1])


def test_the_balancer_forwards_to_all_replicas_without_stickiness(tmp_path: Path) -> None:
    text = (DEPLOY / "haproxy.cfg").read_text()
    assert re.findall(r"^    server (\S+) (\S+)$", text, re.MULTILINE) == [
        (name, f"{name}:4321") for name in REPLICAS
    ]
    assert not re.search(r"stick|balance source|cookie", text.replace("without stickiness", ""))
    service = manifest("Service", "jumpseat")["spec"]
    assert service["sessionAffinity"] == "None"
    assert [port["port"] for port in service["ports"]] == [4321]
    program = shutil.which("haproxy")
    if program is not None:
        # The names are those of a network of containers.
        (tmp_path / "haproxy.cfg").write_text(text)
        done = subprocess.run(
            [program, "-c", "-f", tmp_path / "haproxy.cfg"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_selectors_ports_and_files_of_the_manifests_fit_together() -> None:
    for kind, name in (("StatefulSet", "nats"), ("Deployment", "jumpseat")):
        spec = manifest(kind, name)["spec"]
        labels = spec["template"]["metadata"]["labels"]
        selectors = [spec["selector"]["matchLabels"], manifest("Service", name)["spec"]["selector"]]
        selectors.append(manifest("PodDisruptionBudget", name)["spec"]["selector"]["matchLabels"])
        assert selectors == [labels] * 3
        one = container(kind, name)
        ports = {port["name"] for port in one["ports"]}
        for port in manifest("Service", name)["spec"]["ports"]:
            assert port.get("targetPort", port["name"]) in ports
        volumes = {volume["name"] for volume in pod(kind, name)["volumes"]}
        volumes |= {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
        assert {mount["name"] for mount in one["volumeMounts"]} == volumes
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert probe in one
    deployed = container("Deployment", "jumpseat")
    mounts = {mount["mountPath"] for mount in deployed["volumeMounts"]}
    (tls,) = {one.tcp.tls for one in options() if one.tcp is not None and str(one.tcp.tls).count("/tls/")}
    assert tls is not None
    assert all(path.rpartition("/")[0] in mounts for path in tls)
    # The user of the image.
    assert (
        f"--uid {pod('Deployment', 'jumpseat')['securityContext']['runAsUser']}"
        in (ROOT / "packaging/Containerfile").read_text()
    )


def test_the_manifests_have_the_schemas_of_kubernetes() -> None:
    program = shutil.which("kubernetes-validate")
    if program is None:
        pytest.skip("kubernetes-validate is not installed")
    command = [program, "--strict", DEPLOY / "kubernetes.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_can_use_nats() -> None:
    text = (ROOT / "packaging" / "Containerfile").read_text()
    assert re.findall(r"\[([\w,]+)\]'", text) == ["otel,cluster"] * 2
    for name in REPLICAS:
        build = SERVICES[name]["build"]
        assert (DEPLOY / build["context"] / build["dockerfile"]).exists()


@pytest.mark.parametrize("section", ["configs", "secrets"])
def test_every_file_that_a_service_uses_is_declared(section: str) -> None:
    used: set[str] = {
        entry["source"] if isinstance(entry, dict) else entry
        for service in SERVICES.values()
        for entry in service.get(section, [])
    }
    assert used == set(COMPOSE[section])
    if section == "configs":
        assert all((DEPLOY / entry["file"]).exists() for entry in COMPOSE[section].values())
