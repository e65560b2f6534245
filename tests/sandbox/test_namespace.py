"""The network namespace of a session's commands, as a server opens it that other processes cannot look into."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.sandbox.parts import MECHANISMS

pytestmark = pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")

# Opens a namespace, runs a command in it, ends the process that holds it, and says what comes of that.
PROGRAM = """
import json, os, signal, subprocess, sys
from pathlib import Path
from jumpseat.sandbox.mechanisms import candidates
from jumpseat.sandbox.namespace import open_namespace
from jumpseat.sandbox.view import View
from jumpseat.system.process_memory import protect_memory

protect_memory([])
mechanism = candidates(os.environ)[0]
opened = open_namespace(mechanism, os.environ)
opened.check()
view = View(namespace=opened.namespace)
line = mechanism.command(view, Path("/"), ["cat", "/proc/net/tcp"])
listening = subprocess.run(line, capture_output=True, text=True, check=True).stdout
holder = os.pidfd_open(opened.holder)
os.kill(opened.holder, signal.SIGKILL)
import select
select.select([holder], [], [])
try:
    opened.check()
    ended = "unnoticed"
except OSError:
    ended = "noticed"
failed = subprocess.run(line, capture_output=True).returncode
opened.close()
print(json.dumps([f":{opened.port:04X} " in listening, ended, failed != 0]))
"""


def test_a_protected_server_opens_a_namespace_and_notices_its_end() -> None:
    """Also as an ordinary user, who cannot read the descriptors of such a process."""
    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ))
    if "nsenter cannot be found" in done.stderr:
        pytest.skip("needs nsenter")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, "noticed", True]
