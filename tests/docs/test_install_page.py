"""Releases and the files for services and containers: their arguments are those of the command."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from jumpseat.cli.arguments import parse
from jumpseat_protocol.version import __version__

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"


UNITS = {"jumpseat.service": "%h/.local/bin/jumpseat", "jumpseat-system.service": "/opt/jumpseat/bin/jumpseat"}


def test_every_unit_is_tested() -> None:
    assert {unit.name for unit in PACKAGING.glob("*.service")} == UNITS.keys()


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_starts_a_server_with_a_metrics_port(unit: str) -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", (PACKAGING / unit).read_text(), re.MULTILINE)
    program, *arguments = shlex.split(line)
    options = parse(arguments, {})

    assert program == UNITS[unit]
    assert options.tcp is not None
    assert options.metrics_port is not None


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_understands_every_line_of_a_unit(tmp_path: Path, unit: str) -> None:
    # The program must exist, and the user need not.
    text = (PACKAGING / unit).read_text().replace(UNITS[unit], sys.executable).replace("User=jumpseat\n", "")
    (tmp_path / unit).write_text(text)
    # Without `--man=no`, it calls man for pages that the system may lack.
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert [line for line in done.stderr.splitlines() if unit in line] == []


def test_the_newest_release_in_the_changelog_is_the_version() -> None:
    releases = re.findall(r"^## \[?([0-9][^\]\s]*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert releases[0] == __version__


def test_the_image_serves_its_ports_and_is_not_root() -> None:
    text = (PACKAGING / "Containerfile").read_text()
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    options = parse(json.loads(command), {})

    assert options.tcp is not None
    assert f"EXPOSE {options.tcp.port} {options.tcp.web_port}\n" in text
    assert "USER 10001" in text
    # `jumpseat status` needs a metrics port.
    assert options.metrics_port is not None


def test_every_folder_that_the_image_copies_exists() -> None:
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (PACKAGING / "Containerfile").read_text(), re.MULTILINE)
    sources = [source for line in copied for source in line.split()]

    assert sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_the_compose_file_serves_the_published_ports_with_tls() -> None:
    service = yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"]["jumpseat"]
    options = parse(service["command"], {})

    assert options.tcp is not None
    assert service["ports"] == [f"{port}:{port}" for port in (options.tcp.port, options.tcp.web_port)]
    assert options.tcp.tls == ("/run/secrets/tls-cert", "/run/secrets/tls-key")
    assert (ROOT / "packaging" / service["build"]["context"] / service["build"]["dockerfile"]).exists()
