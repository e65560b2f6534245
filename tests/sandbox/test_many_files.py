"""Lists of files that others make: thousands of settings in a project, and files that vanish meanwhile."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from jumpseat.sandbox.mechanisms import Mechanism
from jumpseat.tools.shell.captured_commands import Commands
from jumpseat.tools.shell.shells import Shells
from tests.sandbox.parts import MECHANISMS, Confining, git
from tests.support.limits import WAIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not MECHANISMS, reason="no mechanism on this platform")]

COUNT = 5000
COMMANDS = 60

COMES_AND_GOES = """
import os, socket, sys
places = sys.argv[1:]
print("begun", flush=True)
while True:
    for place in places:
        if place.endswith(".sock"):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(place)
            listener.listen()
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            open(place, "w").close()
    for place in places:
        os.unlink(place)
"""


FINDS_ONE = """
import os, subprocess, sys
from pathlib import Path
import anyio
from jumpseat.sandbox.mechanisms import find_mechanism
from jumpseat.sandbox.view import View

found, cwd = anyio.run(find_mechanism, dict(os.environ), {"bubblewrap"}), Path(sys.argv[1])
if found is not None:
    view = View(writable=(cwd,), hidden=(cwd / "hidden",))
    line = "echo confined; cat hidden/file"
    subprocess.run(found.command(view, cwd, ["sh", "-c", line], vanishing=True), cwd=cwd, check=False)
"""


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the folders that sandboxes make for temporary files out of the system's folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.mark.thorough
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))
async def test_thousands_of_settings_in_a_project_are_protected(tmp_path: Path, mechanism: Mechanism) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=mechanism)
    files = [session.project / f"package{number}" / ".mcp.json" for number in range(COUNT)]
    folders = [session.project / f"package{number}" / ".vscode" for number in range(0, COUNT, 10)]
    for file in files:
        file.parent.mkdir()
        file.write_text("{}")
    for folder in folders:
        folder.mkdir()
        (folder / "tasks.json").write_text("{}")
    for name in ("first", "last"):
        git(session.project, "init", "-q", f"{name}/repository")
    changed = [files[0], files[-1], folders[0] / "tasks.json", folders[-1] / "tasks.json"]
    changed += [session.project / name / "repository" / ".git" / "config" for name in ("first", "last")]
    before = [file.read_text() for file in changed]
    line = "; ".join(f"echo evil >> {file}" for file in changed)
    result = await session.run(f"({line}); echo fine > package1/file; echo done")
    assert result.output.endswith("done\n")
    assert [file.read_text() for file in changed] == before
    assert (session.project / "package1" / "file").read_text() == "fine\n"


@pytest.mark.thorough
@pytest.mark.skipif("bubblewrap" not in MECHANISMS, reason="needs bubblewrap")
async def test_thousands_of_hidden_files_stay_hidden(tmp_path: Path) -> None:
    home = tmp_path / "user"
    home.mkdir()
    for number in range(COUNT):
        (home / f".secret{number}").write_text("the secret")
    (home / ".keys").mkdir()
    (home / ".keys" / "key").write_text("the secret")
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=MECHANISMS["bubblewrap"], user_home=home)
    result = await session.run(
        f"cd {home}; cat .secret0 .secret{COUNT - 1} .keys/key; umount .secret0; cat .secret0; ls -A .keys;"
        # The first process of the sandbox began before the files were hidden.
        f" for process in /proc/[0-9]*; do cat $process/root{home}/.secret0 $process/cwd/.secret0; done;"
        " grep ^CapEff /proc/self/status"
    )
    assert "the secret" not in result.output
    assert "CapEff:\t0000000000000000" in result.output


@pytest.fixture(params=MECHANISMS.values(), ids=list(MECHANISMS))
def changing(request: pytest.FixtureRequest, tmp_path: Path, outside: Path) -> Iterator[Confining]:
    """A session beside a program that makes and deletes files that the sandbox protects and hides."""
    user_home = outside / "user"
    user_home.mkdir()
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=request.param, user_home=user_home)
    git(session.project, "init", "-q")
    places = [
        *(f"{session.project}/package{number}/.mcp.json" for number in range(3)),
        f"{session.project}/.envrc",
        f"{user_home}/.netrc",
        *(f"{outside}/{number}.sock" for number in range(3)),
    ]
    with subprocess.Popen([sys.executable, "-c", COMES_AND_GOES, *places], stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            program.stdout.readline()
            yield session
        finally:
            program.kill()


@pytest.mark.thorough
async def test_commands_run_beside_a_program_that_makes_and_deletes_protected_files(changing: Confining) -> None:
    outputs: list[str] = []
    async with anyio.create_task_group() as tasks:
        shells = Shells(tasks, make_sandbox=lambda: changing.sandbox)
        for number in range(COMMANDS):
            variables = {"NUMBER": str(number)}
            shell = await shells.start("echo $NUMBER", cwd=changing.project, environ=changing.environ | variables)
            await shell.wait()
            outputs.append(shell.output().strip())
        await shells.close()
    assert outputs == [str(number) for number in range(COMMANDS)]


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=list(MECHANISMS))
async def test_a_hook_that_speaks_like_the_sandbox_runs_once(tmp_path: Path, mechanism: Mechanism) -> None:
    session = Confining(tmp_path / "project", tmp_path / "home", mechanism=mechanism)
    commands = Commands(session.sandbox)
    line = f'echo once >> told; echo "bwrap: Can\'t find source path {session.project}/f: gone" >&2; exit 1'
    result = await commands.run(
        ["bash", "-c", line],
        cwd=session.project,
        environ=session.environ,
        stdin=None,
        timeout_s=WAIT_S,
        show=lambda _: None,
    )
    await commands.close(0)
    assert result.exit_code == 1
    assert (session.project / "told").read_text() == "once\n"


@pytest.mark.thorough
async def test_hooks_run_beside_a_program_that_makes_and_deletes_protected_files(changing: Confining) -> None:
    commands = Commands(changing.sandbox)
    results = [
        await commands.run(
            ["echo", str(number)],
            cwd=changing.project,
            environ=changing.environ,
            stdin=None,
            timeout_s=WAIT_S,
            show=lambda _: None,
        )
        for number in range(COMMANDS)
    ]
    await commands.close(0)
    assert [(result.stdout, result.stderr) for result in results] == [(str(n), "") for n in range(COMMANDS)]


def test_commands_of_hooks_run_where_no_namespace_may_be_inside_of_another(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "file").write_text("secret")

    def run(namespaces: int, *command: str) -> subprocess.CompletedProcess[str]:
        words = [*["unshare", "-Ur"] * namespaces, *command]
        return subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, check=False)

    find = sys.executable, "-c", FINDS_ONE, str(tmp_path)
    if shutil.which("unshare") is None or not run(1, *find).stdout:
        pytest.skip("needs unshare, user namespaces and bubblewrap")
    # Linux allows about 32 of them in one another.
    deepest = next(count for count in range(40, 0, -1) if run(count, "true").returncode == 0)
    assert run(deepest - 1, *find).stdout == "confined\n"
