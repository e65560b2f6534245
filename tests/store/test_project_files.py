"""Files that a project puts at certain places are read only if they are regular files of the project."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.agent.permissions.rules import Rules
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Plugins
from jumpseat.mcp.catalogue import find_servers
from jumpseat.store.plugins.installed_plugins import InstalledPlugins
from jumpseat.store.plugins.manifests import read_plugin
from jumpseat.store.plugins.plugin_folders import PluginFolders
from jumpseat.store.project.agents import AT_ONCE, AgentLibrary
from jumpseat.store.project.instructions import InstructionFiles
from jumpseat.store.project.project_rules import PermissionRules
from jumpseat.store.project.skills import SkillLibrary, find_skills
from jumpseat.store.user.trusted_folders import TrustedFolders
from jumpseat.system.git import working_directory_context
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio

SKILL = "---\nname: leak\ndescription: x\n---\nthe secret"
SECRET = "the secret"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "sub").mkdir()
    (tmp_path / "secret").write_text(SKILL)
    return folder


def read_instructions(settings: SessionSettings, *, home: Path = Path("/nonexistent"), **environ: str) -> str:
    return InstructionFiles(home, environ).read(settings)


@pytest.mark.parametrize(
    "name", ["AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", ".github/instructions/a.instructions.md"]
)
def test_instructions_do_not_come_from_outside_of_the_project(project: Path, name: str) -> None:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for target in (project.parent / "secret", Path("/proc/self/environ")):
        path.symlink_to(target)
        assert read_instructions(SessionSettings(cwd=project)) == ""
        path.unlink()
    (project / "docs.md").write_text("Be kind.")
    path.symlink_to(project / "docs.md")
    assert read_instructions(SessionSettings(cwd=project / "sub")) == "Be kind."


def test_instructions_of_all_kinds_are_read_in_order_and_once(project: Path, tmp_path: Path) -> None:
    scoped = project / ".github" / "instructions"
    home, extra, further = tmp_path / "home", tmp_path / "extra", tmp_path / "further"
    files = {
        home / "copilot-instructions.md": "user",
        project / "AGENTS.md": "agents",
        project / "CLAUDE.md": "agents",
        project / "GEMINI.md": "gemini",
        project / ".github" / "copilot-instructions.md": "copilot",
        project / ".github" / "instructions" / "all.instructions.md": "---\napplyTo: '**'\n---\nall",
        project
        / ".github"
        / "instructions"
        / "deep"
        / "py.instructions.md": "---\napplyTo: '**/*.py, *.pyi'\n---\npy",
        project / ".github" / "instructions" / "readme.md": "no instructions",
        project / "sub" / "AGENTS.md": "sub",
        further / "CLAUDE.md": "further",
        extra / "AGENTS.md": "extra",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    settings = SessionSettings(cwd=project / "sub").with_options(additional_directories=[str(further)])

    read = read_instructions(settings, home=home, COPILOT_CUSTOM_INSTRUCTIONS_DIRS=f"{extra}, {tmp_path / 'none'}")
    scoped = "The following applies only to files that match **/*.py, *.pyi:\n\npy"
    assert read.split("\n\n", 5) == [
        "user",
        "agents",
        "gemini",
        "copilot",
        "all",
        f"{scoped}\n\nsub\n\nfurther\n\nextra",
    ]
    assert read_instructions(settings.with_options(skip_custom_instructions=True), home=home) == ""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be"])
def test_instructions_may_have_a_byte_order_mark(project: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    (project / "AGENTS.md").write_bytes(f"{mark}Grüße, 👋".encode(encoding))
    assert read_instructions(SessionSettings(cwd=project)) == "Grüße, 👋"


def none_installed() -> InstalledPlugins:
    raise AssertionError("no plugin is installed")


def test_skills_and_agents_do_not_come_from_outside_of_the_project(project: Path, tmp_path: Path) -> None:
    settings = SessionSettings.of(project, enable_config_discovery=True)
    plugins: Plugins = PluginFolders((), tmp_path / "home", none_installed)
    for name in (".github/skills/leak/SKILL.md", ".github/agents/leak.md"):
        (project / name).parent.mkdir(parents=True)
        (project / name).symlink_to(tmp_path / "secret")
    skills = SkillLibrary(tmp_path / "home", tmp_path, plugins)
    assert find_skills(skills.places(settings)).items == []
    assert AgentLibrary(tmp_path / "home", plugins, lambda _folder: True).find(settings) == []
    (project / "skill.md").write_text(SKILL)
    for name in (".github/skills/leak/SKILL.md", ".github/agents/leak.md"):
        (project / name).unlink()
        (project / name).symlink_to(project / "skill.md")
    assert [skill.name for skill in find_skills(skills.places(settings)).items] == ["leak"]
    assert [agent.name for agent in AgentLibrary(tmp_path / "home", plugins, lambda _: True).find(settings)] == [
        "leak"
    ]


async def test_few_sessions_search_for_agents_at_once(project: Path, tmp_path: Path) -> None:
    threads: set[int] = set()

    def is_trusted(_folder: Path) -> bool:
        threads.add(threading.get_ident())
        return True

    library = AgentLibrary(tmp_path / "home", PluginFolders((), tmp_path / "home", none_installed), is_trusted)
    settings = SessionSettings.of(project, enable_config_discovery=True)
    async with anyio.create_task_group() as tasks:
        for _ in range(3 * AT_ONCE):
            tasks.start_soon(library.search, settings)
    assert 0 < len(threads) <= AT_ONCE


async def test_a_pipe_in_place_of_a_file_of_the_project_stops_nothing(project: Path, tmp_path: Path) -> None:
    (project / ".jumpseat").mkdir()
    for name in (".jumpseat/config.toml", "AGENTS.md", ".git/config", "plugin.json", ".mcp.json"):
        os.mkfifo(project / name)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    rules = PermissionRules(Rules(), TrustedFolders(tmp_path / "home"))
    with anyio.fail_after(WAIT_S):
        _, problems = await anyio.to_thread.run_sync(rules, project, abandon_on_cancel=True)
        context = await anyio.to_thread.run_sync(working_directory_context, project, abandon_on_cancel=True)
        assert await anyio.to_thread.run_sync(read_instructions, SessionSettings(cwd=project)) == ""
        plugin = await anyio.to_thread.run_sync(read_plugin, project, abandon_on_cancel=True)
        nothing: Mapping[str, Any] = {}
        find = partial(
            find_servers, nothing, user=nothing, user_file=nothing, disabled=frozenset(), plugins=[plugin]
        )
        assert await anyio.to_thread.run_sync(partial(find, project=project), abandon_on_cancel=True) == {}
    assert [problem for problem in problems if "not a regular file" in problem] == problems != []
    assert context.branch == "main"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[permissions]\ndeny = [" + "'shell(x)'," * 1001 + "]", "1001 rules, expected at most 1000"),
        (".".join(["a"] * 120_000) + " = 1", "more than 65536 bytes"),
        (f"[permissions]\ndeny = ['read({'*a' * 5000}b)']", "expected at most 4096 characters"),
    ],
    ids=["rules", "bytes", "characters"],
)
def test_rules_of_a_project_are_limited(project: Path, tmp_path: Path, content: str, problem: str) -> None:
    (project / ".jumpseat").mkdir()
    (project / ".jumpseat" / "config.toml").write_text(content)
    _, problems = PermissionRules(Rules(), TrustedFolders(tmp_path / "home"))(project)
    assert len(problems) == 1
    assert problem in problems[0]
