"""The files in ``deploy/`` are valid, and say what the pages say."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from jumpseat.cluster.settings import cluster_settings
from jumpseat.config import load_config
from tests.support.nats import nats_server

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(path: Path) -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all(path.read_text()) if found]


def nats_configurations() -> dict[str, str]:
    (in_kubernetes,) = [
        found["data"]["nats.conf"]
        for found in documents(DEPLOY / "kubernetes" / "nats.yaml")
        if found["kind"] == "ConfigMap"
    ]
    return {"compose": (DEPLOY / "nats.conf").read_text(), "kubernetes": in_kubernetes}


@pytest.mark.parametrize("name", ["compose", "kubernetes"])
def test_nats_accepts_its_configuration(name: str, tmp_path: Path) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(nats_configurations()[name].replace("/data", str(tmp_path)))
    environ = {**os.environ, "NATS_NAME": "nats-0", "NATS_TOKEN": "a-token"}
    subprocess.run([nats_server(), "-t", "-c", str(config)], check=True, env=environ, capture_output=True)


def test_replicas_accept_their_configuration(tmp_path: Path) -> None:
    (in_kubernetes,) = [
        found["data"]["config.toml"]
        for found in documents(DEPLOY / "kubernetes" / "jumpseat.yaml")
        if found["kind"] == "ConfigMap"
    ]
    for text in ((DEPLOY / "config.toml").read_text(), in_kubernetes):
        assert tomllib.loads(text)
        (tmp_path / "config.toml").write_text(text)
        settings = cluster_settings(load_config(tmp_path).store, {"NATS_TOKEN": "a-token"})
        assert len(settings.servers) == 3


def test_the_services_of_compose_are_those_that_the_configurations_name() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name in ("nats-0", "nats-1", "nats-2"):
        assert name in services
        assert services[name]["environment"]["NATS_NAME"] == name
        assert f"{name}:6222" in (DEPLOY / "nats.conf").read_text()
    balanced = (DEPLOY / "haproxy.cfg").read_text()
    for name in ("replica-0", "replica-1", "replica-2"):
        assert services[name]["hostname"] == name
        assert f"{name}:4321" in balanced
