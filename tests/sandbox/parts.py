"""A sandbox for tests: a project, a home folder of the server, and commands that run in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from jumpseat.sandbox.command_times import Record
from jumpseat.sandbox.mechanisms import Mechanism, candidates
from jumpseat.sandbox.session import Sandboxes, SessionSandbox
from jumpseat.sandbox.settings import SandboxSettings

MECHANISMS = {mechanism.name: mechanism for mechanism in reversed(candidates(dict(os.environ)))}


@dataclass
class Result:
    exit_code: int
    output: str
    messages: list[str]
    refusals: list[str]


@dataclass
class Confining:
    """A session in ``project`` whose commands are confined."""

    project: Path
    home: Path
    settings: SandboxSettings = field(default_factory=lambda: SandboxSettings(mode="auto"))
    mechanism: Mechanism | None = None
    user_home: Path | None = None
    record_of: Callable[[str], Record] | None = None

    def __post_init__(self) -> None:
        for folder in (self.project, self.home):
            folder.mkdir(parents=True, exist_ok=True)
        user_home = self.user_home or self.home.parent / "user"
        user_home.mkdir(exist_ok=True)
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(user_home)}
        self.sandboxes = sandboxes = Sandboxes(self.settings, self.home, self.environ, record_of=self.record_of)
        if self.mechanism is not None:
            sandboxes.mechanism, sandboxes.probed = self.mechanism, True
        self.sandbox = SessionSandbox(sandboxes, lambda: self.settings, lambda: [self.project])

    async def run(self, line: str) -> Result:
        """Run a line of bash and examine the project afterwards."""
        confined = await self.sandbox.confine(["bash", "-c", line], self.project, self.environ)
        ran = await anyio.run_process(
            confined.command, cwd=self.project, env=confined.environ, stderr=subprocess.STDOUT, check=False
        )
        output = ran.stdout.decode()
        messages = await self.sandbox.settle(confined)
        return Result(ran.returncode, output, messages, self.sandbox.refusals(confined, output))


def git(folder: Path, *words: str) -> str:
    """Run git outside of any sandbox, as a person would."""
    words = ("-c", "user.name=n", "-c", "user.email=n@example.com", *words)
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def members(namespace: str) -> list[str]:
    """Return the processes of a PID namespace, by its name in ``/proc``."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns" / "pid") == namespace:
                found.append(entry.name)
        except OSError:
            continue
    return found


def ready_namespaces(project: Path) -> list[str]:
    """Return the PID namespaces in which a bash waits for a command of ``project``."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"exec bash" in (entry / "cmdline").read_bytes().split(b"\0")[4]:
                in_project = Path(os.readlink(entry / "cwd")).is_relative_to(project)
                # Bash has told the server, and closed that pipe: 0, 1, 2 and the pipe of its command are left.
                if in_project and len(os.listdir(entry / "fd")) == 4:
                    found.append(os.readlink(entry / "ns" / "pid"))
        except (OSError, IndexError):
            continue
    return found
