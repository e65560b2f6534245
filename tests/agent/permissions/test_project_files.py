"""An approval of a command that runs the project outside of the sandbox holds until the project changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jumpseat.agent.permissions import project_files
from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.tools.shell.sandbox_needs import place, shell_permission
from jumpseat_protocol.permissions import PermissionDecision, ShellPermission
from tests.sandbox.parts import git

pytestmark = pytest.mark.anyio

OUTSIDE = "the reason"
"""In front of a line that the model wants to run outside."""

HOOKED = "git push origin hooked"
"""A line for which git runs hooks."""

OBEYING = (
    ("docker compose up -d", "docker compose up -d"),
    ("docker build .", "docker build ."),
    ("docker run -v .:/x image ./run.sh", "docker run -v .:/x image ./run.sh"),
    ("terraform plan", "terraform plan -no-color | tail -40"),
    ("terraform show", "terraform show"),
    ("sudo make install", "sudo make install"),
    ("npm publish", "npm publish"),
    ("vagrant up", "vagrant up"),
    ("psql -f src/x.sql", "psql -f src/x.sql"),
    (HOOKED, HOOKED),
    (f"{OUTSIDE}./run.sh", f"{OUTSIDE}./run.sh"),
    (f"{OUTSIDE}python3 src/x.py", f"{OUTSIDE}python3 src/x.py"),
)
OTHERS = (
    ("git push origin main", "git push origin main"),
    ("docker ps", "docker images"),
    ("docker exec web ls", "docker exec web ls"),
    ("gh pr create --fill", "gh pr create --fill"),
    ("ssh host uptime", "ssh host uptime"),
    ("kubectl get pods", "kubectl get pods -A | head -3"),
    ("terraform providers", "terraform providers"),
    ("npm test", "npm test"),
    (f"{OUTSIDE}ls src", f"{OUTSIDE}ls src"),
)


def request_of(line: str) -> ShellPermission:
    reason = OUTSIDE if line.startswith(OUTSIDE) else None
    line = line.removeprefix(OUTSIDE)
    hooks = [".husky/pre-push"] if line == HOOKED else []
    return shell_permission(line, line, place(line, confines=True, may_leave=True, unsandboxed=reason), hooks)


class Approving:
    """A session in which one line was approved."""

    def __init__(self, folder: Path) -> None:
        self.scope = PathScope(lambda: folder)
        self.permissions = Permissions(lambda _: None, lambda: False, lambda _: False, self.scope)

    async def approve(self, line: str) -> None:
        request = request_of(line)
        facts = gather_facts(request, "bash", self.scope)
        await self.permissions.approvals.keep(PermissionDecision(kind="approve-for-session"), request, facts)

    async def covers(self, line: str) -> bool:
        return (await self.permissions.decide(request_of(line), "bash")).status == "allowed"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q")
    for name in ("run.sh", "compose.yaml", "src/x.sql", "src/x.py"):
        (folder / name).write_text("1")
    return folder


def write(project: Path) -> None:
    file = project / "compose.yaml"
    times = file.stat()
    file.write_text("2")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def add(project: Path) -> None:
    (project / "src" / "new").mkdir()
    (project / "src" / "new" / "file").touch()


def move(project: Path) -> None:
    (project / "run.sh").rename(project / "old.sh")
    (project / "src" / "x.py").rename(project / "run.sh")


@pytest.mark.parametrize("change", [write, add, move])
async def test_it_is_asked_about_again_after_a_change(project: Path, change: Callable[[Path], None]) -> None:
    sessions = [(Approving(project), first, later) for first, later in OBEYING]
    for session, first, _ in sessions:
        await session.approve(first)
    assert [later for session, _, later in sessions if not await session.covers(later)] == []
    change(project)
    assert [later for session, _, later in sessions if await session.covers(later)] == []
    # An approval of another command says nothing about this one.
    session, first, later = sessions[0]
    await session.approve(sessions[1][1])
    assert not await session.covers(later)
    await session.approve(first)
    assert await session.covers(later)


async def test_other_commands_stay_approved(project: Path) -> None:
    sessions = [(Approving(project), first, later) for first, later in OTHERS]
    for session, first, _ in sessions:
        await session.approve(first)
    for change in (write, add, move):
        change(project)
        assert [later for session, _, later in sessions if not await session.covers(later)] == []


async def test_commits_change_nothing_and_running_commands_may_change_everything(project: Path) -> None:
    session, (first, later) = Approving(project), OBEYING[0]
    await session.approve(first)
    git(project, "commit", "-q", "--allow-empty", "-m", "m")
    assert await session.covers(later)
    session.scope.movers.append(lambda: True)
    assert not await session.covers(later)
    await session.approve(first)
    assert not await session.covers(later)


async def test_in_a_large_project_the_approval_is_for_one_call(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_files, "MAX_FILES", 3)
    session, (first, later) = Approving(project), OBEYING[0]
    await session.approve(first)
    assert not await session.covers(later)
