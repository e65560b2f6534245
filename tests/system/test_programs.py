"""The server starts no program of its own from a folder that commands can write to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jumpseat.sandbox.session import Sandboxes
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.system.programs import OwnPrograms, find_program
from tests.agent.permissions.test_permissions_over_the_wire import DONE, bash, open_session, outcomes, run
from tests.sandbox.parts import git
from tests.support.server import calls, running_server


def program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_folders_that_commands_can_write_to_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, bin_, linked = tmp_path / "project", tmp_path / "bin", tmp_path / "linked"
    inside = program(project / "node_modules" / ".bin" / "tool")
    (tmp_path / "alias").symlink_to(project)
    linked.mkdir()
    (linked / "tool").symlink_to(inside)
    good = program(bin_ / "tool")
    (project / "way-out").symlink_to(bin_)
    monkeypatch.chdir(project / "node_modules")
    for entry in (
        project / "node_modules" / ".bin",
        tmp_path / "alias" / "node_modules" / ".bin",
        tmp_path / "bin" / ".." / "project" / "node_modules" / ".bin",
        project / "way-out",
        linked,
        ".bin",
        "./.bin",
        ".",
        "",
    ):
        environ = {"PATH": f"{entry}{os.pathsep}{bin_}"}
        for folders in ([project], [tmp_path / "alias"]):
            assert find_program("tool", environ, folders) == str(good), (entry, folders)
        path = OwnPrograms(lambda: [project]).environ(environ)["PATH"]
        assert path in (str(bin_), f"{linked}{os.pathsep}{bin_}")
    assert find_program("tool", {"PATH": str(inside.parent)}, [project]) is None
    assert find_program("tool", {"PATH": str(inside.parent)}, [tmp_path / "other"]) == str(inside)


@pytest.mark.anyio
@pytest.mark.parametrize("entry", ["{project}/node_modules/.bin", "./node_modules/.bin", "{other}/bin"])
async def test_a_program_that_a_command_puts_into_the_path_does_not_run_outside(tmp_path: Path, entry: str) -> None:
    project, other, ran = tmp_path / "project", tmp_path / "other", tmp_path / "ran"
    for folder in (project, other):
        folder.mkdir()
    git(project, "init", "--quiet")
    (project / "a.txt").write_text("apple\n")
    entry = entry.format(project=project, other=other)
    names = "rg git bash bwrap nsenter rm"
    lines = f"mkdir -p {entry}\nfor name in {names}; do\n"
    lines += f'printf "#!/bin/sh\\necho $name >> {ran}\\n" > {entry}/$name; chmod +x {entry}/$name; done\n'
    places = {
        "c1": calls("grep", "c1", pattern="apple"),
        "c2": calls("glob", "c2", pattern="*"),
        "c3": calls("bash", "c3", command="git push"),
    }
    planting_in = other if "other" in entry else project
    (planting_in / "plant.sh").write_text(lines)
    async with running_server(tmp_path, env={"PATH": f"{entry}:{os.environ['PATH']}"}) as server:
        for folder, turns in ((planting_in, [bash("sh plant.sh")]), (project, list(places.values()))):
            session = await open_session(server, folder, *turns, DONE)
            await server.wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
            events = await run(server.wire, session)
    assert len(list((planting_in / entry).iterdir())) == len(names.split())
    assert outcomes(events)[:2] == ["ok", "ok"]
    # git is the program that the approved line names.
    assert not ran.exists() or set(ran.read_text().split()) == {"git"}


@pytest.mark.anyio
async def test_git_that_judges_a_command_is_not_that_of_another_session(tmp_path: Path) -> None:
    project, other, ran = tmp_path / "project", tmp_path / "other", tmp_path / "ran"
    for folder in (project, other):
        folder.mkdir()
    git(project, "init", "--quiet", "--initial-branch=main")
    git(project, "commit", "--quiet", "--allow-empty", "-m", "first")
    git(project, "branch", "other")
    program(other / "plant.sh", f'mkdir bin; printf "#!/bin/sh\\necho x > {ran}\\n" > bin/git; chmod +x bin/git')
    async with running_server(tmp_path, env={"PATH": f"{other}/bin:{os.environ['PATH']}"}) as server:
        for folder, line in ((other, "sh plant.sh"), (project, "git checkout other")):
            session = await open_session(server, folder, bash(line), DONE)
            assert outcomes(await run(server.wire, session, {"kind": "approve-once"})) == ["ok"]
    assert (other / "bin" / "git").exists()
    assert not ran.exists()


@pytest.mark.parametrize("cache", [".local/share/pnpm", ".cargo/registry", "home/caches/project-1/pnpm"])
def test_programs_in_caches_are_left_out_from_the_start(tmp_path: Path, cache: str) -> None:
    program(tmp_path / cache / "tool")
    environ = {"HOME": str(tmp_path), "PATH": f"{tmp_path / cache}{os.pathsep}{tmp_path / 'bin'}"}
    sandboxes = Sandboxes(SandboxSettings(), tmp_path / "home", environ)
    assert sandboxes.own_environ()["PATH"] == str(tmp_path / "bin")
    assert find_program("tool", environ, sandboxes.opened) is None
