"""The files for services and containers: their arguments are those of the command."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import yaml

from jumpseat.cli import parse

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"


def test_the_service_starts_a_server_with_a_metrics_port() -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", (PACKAGING / "jumpseat.service").read_text(), re.MULTILINE)
    program, *arguments = shlex.split(line)
    options = parse(arguments, {})

    assert program == "%h/.local/bin/jumpseat"
    assert options.tcp is not None
    assert options.metrics_port is not None


def test_the_image_serves_its_port_and_is_not_root() -> None:
    text = (PACKAGING / "Containerfile").read_text()
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    options = parse(json.loads(command), {})

    assert options.tcp is not None
    assert f"EXPOSE {options.tcp.port}" in text
    assert "USER jumpseat" in text
    # `jumpseat status` needs a metrics port.
    assert options.metrics_port is not None


def test_every_folder_that_the_image_copies_exists() -> None:
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (PACKAGING / "Containerfile").read_text(), re.MULTILINE)
    sources = [source for line in copied for source in line.split()]

    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_the_compose_file_serves_the_published_port_with_tls() -> None:
    service = yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"]["jumpseat"]
    options = parse(service["command"], {})

    assert options.tcp is not None
    assert service["ports"] == [f"{options.tcp.port}:{options.tcp.port}"]
    assert options.tcp.tls == ("/run/secrets/tls-cert", "/run/secrets/tls-key")
    assert (ROOT / "packaging" / service["build"]["context"] / service["build"]["dockerfile"]).exists()
