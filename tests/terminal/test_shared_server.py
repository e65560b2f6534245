"""``jumpseat run --connect``: a prompt on a server that runs already. ``chat`` connects by the same function."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.certificates import certificate as certificate
from tests.support.forked import executable
from tests.terminal.terminal import Place

TOKEN = {"COPILOT_CONNECTION_TOKEN": "sesame"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, {"prompts": [{"turns": [{"text": "You said: {{last_user}}"}]}]})


@contextmanager
def listening(place: Place, *args: str) -> Generator[str]:
    """Run a server with a token, and yield its address."""
    command = [executable(), "--headless", "--port", "0", *args]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=place.env(TOKEN),
        cwd=place.project,
    ) as server:
        try:
            assert server.stdout is not None
            yield "127.0.0.1:" + server.stdout.readline().rpartition(" ")[2].strip()
        finally:
            server.terminate()


def test_a_prompt_runs_on_a_server_that_is_running_and_goes_on_running(place: Place) -> None:
    with listening(place) as address:
        for prompt in ("hello", "again"):
            done = place.run("-p", prompt, "--connect", address, env=TOKEN)
            assert (done.returncode, done.stdout, done.stderr) == (0, f"You said: {prompt}\n", "")
        refused = place.run("-p", "hello", "--connect", address)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "AUTHENTICATION_FAILED" in refused.stderr
    assert "could not connect to" in place.run("-p", "hello", "--connect", address).stderr


def test_a_server_with_tls_is_trusted_by_its_authority_alone(place: Place, certificate: tuple[Path, Path]) -> None:
    cert, key = map(str, certificate)
    with listening(place, "--tls-cert", cert, "--tls-key", key) as address:
        done = place.run("-p", "hello", "--connect", address, "--tls-ca", cert, env=TOKEN)
        assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hello\n", "")
        untrusted = place.run("-p", "hello", "--connect", address, "--tls", env=TOKEN)
        assert (untrusted.returncode, untrusted.stdout) == (1, "")
        assert untrusted.stderr.endswith(
            "its certificate is not trusted: self-signed certificate;"
            " --tls-ca FILE trusts the certificates in a file\n"
        )
        misnamed = place.run(
            "-p", "hello", "--connect", address.replace("127.0.0.1", "localhost"), "--tls-ca", cert, env=TOKEN
        )
        assert misnamed.stderr.endswith("give --connect a name or address that is in the certificate\n")
        plain = place.run("-p", "hello", "--connect", address, env=TOKEN)
        assert plain.returncode == 1
        assert plain.stderr.endswith("if the server requires TLS, add --tls\n")
        unknown = place.run("-p", "hello", "--connect", address, "--tls-ca", cert)
        assert unknown.returncode == 1
        assert unknown.stderr.endswith("set COPILOT_CONNECTION_TOKEN to a token of the server\n")


def test_arguments_about_a_running_server_that_do_not_fit_are_refused(place: Place) -> None:
    for arguments, words in (
        (["--connect", "nowhere"], "expected HOST:PORT, got 'nowhere'"),
        (["--connect", "host:0"], "expected HOST:PORT, got 'host:0'"),
        (["--tls"], "--tls and --tls-ca require --connect"),
        (["--connect", "[::1]:80", "--tls-ca", "none.pem"], "no such file: 'none.pem'"),
        (["--connect", "[::1]:80", "--log-level", "debug"], "--connect excludes it"),
    ):
        done = place.run("-p", "hello", *arguments)
        assert done.returncode == 2
        assert words in done.stderr
