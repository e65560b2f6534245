"""The files of `deploy/` agree with the command, the configuration, and with each other.

No container is started: images and orchestrators are not part of the tests. NATS and HAProxy themselves check their
configurations, and ``kubernetes-validate`` (a package of 100 MB) the manifests, where they are installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import pytest
import yaml

from jumpseat.cli.arguments import parse
from jumpseat.cluster.nats.settings import cluster_settings
from jumpseat.config import StoreConfig, load_config
from jumpseat.options import Options
from tests.support.limits import WAIT_S
from tests.support.nats import nats_server
from tests.support.ports import free_ports
from tests.support.server import running_server, scripted

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: Final[dict[str, Any]] = COMPOSE["services"]
MANIFESTS: Final[list[dict[str, Any]]] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
NATS_CONF: Final = (DEPLOY / "nats.conf").read_text()
TOKEN: Final = "token-of-clients"
PASSWORD: Final = "password-of-routes"
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
    return [
        parse([one.replace("$(POD_IP)", "10.0.0.7") for one in arguments], {}) for _, arguments, _ in commands()
    ]


def test_every_replica_is_started_with_options_of_the_command() -> None:
    assert len(options()) == 4
    for one in options():
        assert one.tcp is not None
        assert (one.tcp.port, one.tcp.web_port) == (4321, 8123)
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
    config = store(tmp_path)
    make_certificates(tmp_path, "localhost")
    config.tls_ca = str(tmp_path / "tls" / "nats-ca.pem")
    settings = cluster_settings(config, {"NATS_TOKEN": "secret"})
    copies = manifest("StatefulSet", "nats")["spec"]["replicas"]
    assert settings.copies == copies == len(NATS)
    assert settings.token == "secret"
    addresses = [f"tls://nats-{number}.nats:4222" for number in range(copies)]
    assert list(settings.servers) == addresses
    # In Kubernetes, the names are those of the pods and the headless service; in compose, aliases.
    assert manifest("Service", "nats")["spec"]["clusterIP"] == "None"
    assert manifest("StatefulSet", "nats")["spec"]["serviceName"] == "nats"
    aliases = [alias for name in NATS for alias in SERVICES[name]["networks"]["store"]["aliases"]]
    assert [f"tls://{alias}:4222" for alias in aliases] == addresses


def make_certificates(folder: Path, *names: str) -> None:
    command = ["sh", DEPLOY / "certificates.sh", *names]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def routes(place: str) -> list[str]:
    """Return the addresses of the routes that a server of NATS is started with, with the password as a variable."""
    if place == "compose":
        variables: dict[str, str] = SERVICES[NATS[0]]["environment"]
        return [variables[f"NATS_ROUTE_{number}"] for number in range(3)]
    variables = {one["name"]: one.get("value", "") for one in container("StatefulSet", "nats")["env"]}
    return [variables[f"NATS_ROUTE_{number}"].replace("$(", "${").replace(")", "}") for number in range(3)]


@asynccontextmanager
async def deployed_nats(folder: Path) -> AsyncGenerator[tuple[list[int], list[int], int]]:
    """Run three servers with the configuration of the cluster, and other ports and folders.

    Yields the ports for clients and for routes, and the port for monitoring of the second server.
    """
    make_certificates(folder, "localhost")
    ports, cluster_ports, monitors = free_ports(3), free_ports(3), free_ports(3)
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            text = NATS_CONF.replace("store_dir: /data", f'store_dir: "{folder / str(number)}"')
            for name in ("ca", "cert", "key"):
                file = folder / "tls" / {"ca": "nats-ca.pem", "cert": "nats.pem", "key": "nats-key.pem"}[name]
                text = text.replace(f"/run/secrets/nats-{name}", str(file))
            text = text.replace("port: 4222", f"port: {ports[number]}").replace("8222", str(monitors[number]))
            text = text.replace("port: 6222", f"port: {cluster_ports[number]}")
            (folder / f"nats-{number}.conf").write_text(text)
            environ = {"NATS_NAME": f"nats-{number}", "NATS_TOKEN": TOKEN, "NATS_ROUTES_PASSWORD": PASSWORD}
            for other, address in enumerate(routes("compose")):
                address = address.replace("${NATS_ROUTES_PASSWORD}", PASSWORD).replace(
                    "6222", str(cluster_ports[other])
                )
                environ[f"NATS_ROUTE_{other}"] = re.sub(r"nats-\d\.nats", "localhost", address)
            command = [nats_server(), "-c", str(folder / f"nats-{number}.conf")]
            tasks.start_soon(partial(anyio.run_process, command, env={**os.environ, **environ}, check=False))
        with anyio.fail_after(WAIT_S):
            for monitor in monitors:
                while await answer(f"http://127.0.0.1:{monitor}/healthz?js-server-only=true") != 200:
                    await anyio.lowlevel.checkpoint()
        yield ports, cluster_ports, monitors[1]
        tasks.cancel_scope.cancel()


async def answer(url: str) -> int:
    """Return the status of an answer; 0 if there is none."""
    try:
        async with httpx2.AsyncClient(trust_env=False) as client:
            return (await client.get(url)).status_code
    except httpx2.HTTPError:
        return 0


@pytest.mark.anyio
async def test_only_who_knows_the_secrets_uses_or_joins_the_servers_of_nats(tmp_path: Path) -> None:
    async with deployed_nats(tmp_path) as (ports, cluster_ports, monitor):
        store = (
            f'url = "tls://localhost:{ports[0]}"\ntoken_env = "NATS_TOKEN"\ntls_ca = "{tmp_path}/tls/nats-ca.pem"\n'
        )
        async with running_server(
            tmp_path / "replica", config=f"[store]\n{store}", env={"NATS_TOKEN": TOKEN}
        ) as server:
            await server.wire.prompt(await server.wire.create(scripted({"text": "ok"})))
        make_certificates(tmp_path / "replica", "localhost")
        own = f'cert_file: "{tmp_path}/replica/tls/nats.pem", key_file: "{tmp_path}/replica/tls/nats-key.pem"'
        theirs = f'cert_file: "{tmp_path}/tls/nats.pem", key_file: "{tmp_path}/tls/nats-key.pem"'
        trusting = f'ca_file: "{tmp_path}/tls/nats-ca.pem"'
        strangers = {
            "plain": ("nats://localhost", ""),
            "with the password only": (f"nats://routes:{PASSWORD}@localhost", ""),
            "with a certificate of its own": (
                f"nats://routes:{PASSWORD}@localhost",
                f"tls {{ {own}, {trusting} }}",
            ),
            "with the certificate only": ("nats://localhost", f"tls {{ {theirs}, {trusting} }}"),
            "with another password": ("nats://routes:other@localhost", f"tls {{ {theirs}, {trusting} }}"),
        }
        for name, (address, tls) in strangers.items():
            assert not await joins(tmp_path, monitor, f"{address}:{cluster_ports[1]}", tls), name
        known = f"nats://routes:{PASSWORD}@localhost:{cluster_ports[1]}"
        assert await joins(tmp_path, monitor, known, f"tls {{ {theirs}, {trusting} }}")


async def joins(folder: Path, monitor: int, route: str, tls: str) -> bool:
    """Return whether a server with a route to the cluster joins it, once it is accepted or refused."""
    client, own = free_ports(2)
    (folder / "stranger.conf").write_text(
        f'server_name: stranger\nlisten: "127.0.0.1:{client}"\nlog_file: "{folder}/stranger.log"\n'
        f'cluster {{ name: jumpseat, listen: "127.0.0.1:{own}", routes: ["{route}"], {tls} }}\n'
    )
    log = folder / "stranger.log"
    log.write_text("")
    async with await anyio.open_process([nats_server(), "-c", folder / "stranger.conf"]) as process:
        try:
            with anyio.fail_after(WAIT_S):
                while "stranger" not in await neighbours(monitor):
                    # It tries again for ever.
                    if re.search(r"\[ERR\]|connection closed: (?!Duplicate)", log.read_text()):
                        return False
            return True
        finally:
            process.kill()


async def neighbours(monitor: int) -> list[str]:
    """Return the names of the servers with a route to one with this port for monitoring."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        found = (await client.get(f"http://127.0.0.1:{monitor}/routez")).json()
    return [route.get("remote_name", "") for route in found["routes"] or ()]


def test_nats_accepts_its_configuration_and_syncs_each_message() -> None:
    assert re.search(r"^  sync_interval: always$", NATS_CONF, re.MULTILINE)
    expected = [f"nats://routes:${{NATS_ROUTES_PASSWORD}}@nats-{number}.nats:6222" for number in range(3)]
    assert routes("compose") == routes("kubernetes") == expected


def test_nothing_but_the_cluster_reaches_nats() -> None:
    # NATS without a token lets everybody in.
    given = [SERVICES[name]["environment"] for name in NATS]
    assert {one["NATS_TOKEN"] for one in given} == {"${NATS_TOKEN:?has to be set}"}
    # Monitoring asks nobody to log in.
    assert re.findall(r"^https?.*", NATS_CONF, re.MULTILINE) == ['http: "127.0.0.1:8222"']
    assert all(port["name"] != "monitor" for port in container("StatefulSet", "nats")["ports"])
    policy = manifest("NetworkPolicy", "nats")["spec"]
    assert (
        policy["podSelector"]["matchLabels"] == manifest("StatefulSet", "nats")["spec"]["selector"]["matchLabels"]
    )
    reached = {
        rule["ports"][0]["port"]: [source["podSelector"]["matchLabels"] for source in rule["from"]]
        for rule in policy["ingress"]
    }
    assert reached == {"client": [{"app": "jumpseat"}], "cluster": [{"app": "nats"}]}
    assert COMPOSE["networks"]["store"] == {"internal": True}
    for name, service in SERVICES.items():
        assert ("store" in service.get("networks", ())) == (name != "balancer"), name
        assert "ports" not in service or name == "balancer"


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
        (name, f"{name}:{port}") for port in (4321, 8123) for name in REPLICAS
    ]
    assert re.findall(r"^    bind :(\d+)$", text, re.MULTILINE) == ["4321", "8123"]
    assert SERVICES["balancer"]["ports"] == ["4321:4321", "8123:8123"]
    assert not re.search(r"stick|balance source|cookie", text.replace("without stickiness", ""))
    service = manifest("Service", "jumpseat")["spec"]
    assert service["sessionAffinity"] == "None"
    assert [port["port"] for port in service["ports"]] == [4321, 8123]
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
    # What is in the lock: tests/docs/test_locks.py.
    assert "-r packaging/locks/container.txt" in text
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
