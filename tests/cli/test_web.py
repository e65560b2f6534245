"""``jumpseat web``: the address of its own server, and that of one that runs already."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jumpseat.cli.web import find_server
from jumpseat.network.site import has_page
from jumpseat.store.user.page_access import PageAccess
from tests.support.limits import WAIT_S

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/#pass=pass-\S+")


@pytest.mark.skipif(not has_page(), reason="the page is not built: make web")
def test_web_starts_a_server_once_and_opens_the_running_one_from_then_on(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COPILOT_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "jumpseat", "web", "--print"]
    with subprocess.Popen(command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        first = ADDRESS.search(server.stdout.readline())
        assert first is not None
        again = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=True)
        second = ADDRESS.search(again.stdout)
        assert second is not None
        assert (first[1], first[0] != second[0]) == (second[1], True)
        server.send_signal(signal.SIGTERM)
        assert server.wait(WAIT_S) == 0
    assert PageAccess(tmp_path / "home").servers() == []


def test_an_entry_of_a_killed_server_is_removed(tmp_path: Path) -> None:
    access = PageAccess(tmp_path)
    access.add_server("http://127.0.0.1:1")
    assert [server.pid for server in access.servers()] == [os.getpid()]
    assert find_server(access) is None
    assert access.servers() == []


def test_web_says_how_to_get_the_page_if_the_installation_lacks_it(tmp_path: Path) -> None:
    package, original = tmp_path / "lib" / "jumpseat", ROOT / "server" / "jumpseat"
    (package / "network").mkdir(parents=True)
    for folder in (original, original / "network"):
        for entry in folder.iterdir():
            if entry.name not in {"network", "static", "__pycache__"}:
                (package / entry.relative_to(original)).symlink_to(entry)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-m", "jumpseat", "web", "--print"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: the page is not part of this installation: ")
    assert f"make -C {ROOT} web" in done.stderr
