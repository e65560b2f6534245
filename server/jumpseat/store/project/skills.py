"""Skills on disk: folders with a ``SKILL.md``, of sessions, projects, users and plugins.

The front matter of the file names and describes the skill; the rest is for the model, once the skill is loaded.
A command is a skill in one file that only the user can call: a prompt file, or a command in Claude's format.
An invalid file is reported and affects no other skill.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, Literal, cast
from weakref import WeakKeyDictionary

import anyio.to_thread
from msgspec import Struct

from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Plugin, Plugins, Skill, SkillSource
from jumpseat.errors import StoreError
from jumpseat.store.project.front_matter import (
    Found,
    body,
    files_below,
    front_matter,
    names,
    plain_fields,
    project_folders,
    read_text,
)
from jumpseat.system.regular_files import is_there
from jumpseat_protocol.events import LoadedSkill

FILE: Final = "SKILL.md"
PROMPT_SUFFIX: Final = ".prompt.md"
COMMAND_FOLDERS: Final = ((".github/prompts", PROMPT_SUFFIX), (".claude/commands", ".md"))
"""Folders of a project with a file for each command, and how the names of these files end."""
IGNORED: Final = ("agent", "mode", "model", "tools")
"""Fields of command files that have no effect."""
PROJECT_FOLDERS: Final = (".github/skills", ".claude/skills", ".agents/skills")
"""Folders of a project that hold skills; new skills are written to the first."""
MOST_SKILLS: Final = 500
"""Limit on the skills of one folder."""

LONGEST_DESCRIPTION: Final = 100
"""Limit in characters on the description of a command whose file has none: its first line."""

_NAME: Final = re.compile(r"[\w.:-]{1,128}")


class Place(Struct, frozen=True):
    """A folder that may hold skills, or below which each file that ends in ``commands`` is a command."""

    path: Path
    source: SkillSource
    project: Path | None = None
    plugin: Plugin | None = None
    commands: str | None = None


class SkillLibrary:
    """The skills of all sessions of a process; those of the user are in ``home`` and ``user_home``."""

    def __init__(self, home: Path, user_home: Path, plugins: Plugins) -> None:
        self._personal = (
            Place(home / "skills", "personal-copilot"),
            Place(user_home / ".agents" / "skills", "personal-agents"),
        )
        self._personal_commands = (
            Place(home / "prompts", "personal-copilot", commands=PROMPT_SUFFIX),
            Place(user_home / ".claude" / "commands", "personal-agents", commands=".md"),
        )
        self._personal_paths = [str(place.path) for place in (*self._personal, *self._personal_commands)]
        self.plugins = plugins
        self._sessions: WeakKeyDictionary[Session, SessionSkills] = WeakKeyDictionary()
        self._prepared: SessionSkills | None = None

    def for_session(self, session: Session) -> SessionSkills:
        """Return the skills of a live session."""
        skills = self._sessions.get(session)
        if skills is None:
            prepared, self._prepared = self._prepared, None
            is_own = prepared is not None and prepared.settings is session.settings
            skills = prepared if prepared is not None and is_own else SessionSkills(session.settings, self)
            self._sessions[session] = skills
        return skills

    async def find(self, settings: SessionSettings) -> SessionSkills:
        """Find the skills for a session that is about to be created, in a thread if there may be any."""
        skills = SessionSkills(settings, self)
        if self._may_exist(settings):
            await anyio.to_thread.run_sync(skills.all, abandon_on_cancel=True)
        else:
            skills.keep_none()
        return skills

    def _may_exist(self, settings: SessionSettings) -> bool:
        """Return whether there may be skills; finding out takes less time than starting work in a thread."""
        return settings.options.enable_skills and (
            settings.options.enable_config_discovery
            or bool(settings.options.skill_directories or self.plugins.folders(settings))
            or any(map(is_there, self._personal_paths))
            or any(
                is_there(f"{folder}{os.sep}{name}")
                for folder, _ in _command_roots(settings)
                for name, _ in COMMAND_FOLDERS
            )
        )

    def prepare(self, skills: SessionSkills) -> None:
        """Use ``skills`` for the session that is created next with their settings."""
        self._prepared = skills

    def places(self, settings: SessionSettings) -> list[Place]:
        """Return the skill folders of a session, in the order of precedence."""
        if not settings.options.enable_skills:
            return []
        named = [Place(_absolute(settings.cwd, folder), "custom") for folder in settings.options.skill_directories]
        project = (
            [*project_places(settings.cwd), *_added_places(settings)]
            if settings.options.enable_config_discovery
            else []
        )
        found = self.plugins.read_all(settings)
        plugins = [Place(folder, "plugin", plugin=plugin) for plugin in found for folder in plugin.skill_folders]
        plugins += [
            Place(folder, "plugin", plugin=plugin, commands=".md")
            for plugin in found
            for folder in plugin.command_folders
        ]
        commands = [
            Place(folder / name, source, project=folder, commands=suffix)
            for folder, source in _command_roots(settings)
            for name, suffix in COMMAND_FOLDERS
        ]
        return [*named, *project, *commands, *self._personal, *self._personal_commands, *plugins]

    def personal(self) -> list[Place]:
        """Return the folders of the user's skills for all projects."""
        return list(self._personal)


class SessionSkills:
    """The skills of one session, found according to its ``settings``."""

    def __init__(self, settings: SessionSettings, library: SkillLibrary) -> None:
        self.settings = settings
        self._library = library
        self._found_for: tuple[object, ...] | None = None
        # `None` where nothing was read, because there is nothing.
        self._found: Found[Skill] | None = None

    def all(self) -> list[Skill]:
        """Return all skills; they are read again only after :meth:`reload` or a change of the settings."""
        key = self._key()
        if key != self._found_for:
            self._found_for, self._found = key, find_skills(self._library.places(self.settings))
        return self._found.items if self._found is not None else []

    def keep_none(self) -> None:
        """Keep in mind that there are no skills with these settings."""
        self._found_for, self._found = self._key(), None

    def _key(self) -> tuple[object, ...]:
        settings = self.settings
        return (
            settings.cwd,
            settings.options.enable_skills,
            settings.options.enable_config_discovery,
            tuple(settings.options.skill_directories),
            tuple(settings.options.additional_directories),
            tuple(self._library.plugins.folders(settings)),
        )

    def to_wire(self) -> list[LoadedSkill]:
        """Return all skills in the form that clients get, disabled ones too."""
        return [skill.listed(enabled=self.is_enabled(skill.name)) for skill in self.all()]

    def is_enabled(self, name: str) -> bool:
        """Return whether a skill is not disabled."""
        return name not in self.settings.options.disabled_skills

    def reload(self) -> Found[Skill]:
        """Read all skills again."""
        self._found_for = None
        self.all()
        return self._found or Found[Skill]()

    def body(self, skill: Skill) -> str:
        """Return the text of a skill for the model; see :meth:`jumpseat.agent.skills.Skills.body`."""
        return body(read_text(skill.path, skill.project))


def project_places(cwd: Path) -> Iterator[Place]:
    """Yield the skill folders of a project, from the working directory up to the root of the project."""
    for folder, source in project_folders(cwd):
        for name in PROJECT_FOLDERS:
            yield Place(folder / name, source, project=folder)


def _added_places(settings: SessionSettings) -> Iterator[Place]:
    """Yield the skill folders of the additional folders of a session."""
    for folder in map(Path, settings.options.additional_directories):
        for name in PROJECT_FOLDERS:
            yield Place(folder / name, "project", project=folder)


def _command_roots(settings: SessionSettings) -> Iterator[tuple[Path, Literal["project", "inherited"]]]:
    """Yield the folders of a session that may have commands, which only the user calls: they need no discovery."""
    yield from project_folders(settings.cwd)
    for folder in settings.options.additional_directories:
        yield settings.cwd / folder, "project"


def find_skills(places: Iterable[Place]) -> Found[Skill]:
    """Read the skills in ``places``; of skills with the same name, the first is used."""
    found = Found[Skill]()
    for place in places:
        if place.commands is not None:
            for path in files_below(place.path, place.commands, MOST_SKILLS):
                found.add(path, partial(_command, path, place, place.commands))
            continue
        for path in _files(place.path, found):
            found.add(path, partial(_skill, path, place, found))
    return found


def _files(folder: Path, found: Found[Skill]) -> list[Path]:
    """Return the paths of the skill files in ``folder``, which may be a skill itself."""
    if os.path.lexists(folder / FILE):
        return [folder / FILE]
    names = found.entries(folder, lambda _name: True, MOST_SKILLS)
    return [folder / name / FILE for name in names if os.path.isfile(folder / name / FILE)]


def _skill(path: Path, place: Place, found: Found[Skill]) -> Skill:
    """Read the skill in a file.

    Raises:
        StoreError: the file cannot be read, or is invalid.
    """
    front = front_matter(read_text(path, place.project))
    name = front.get("name", path.parent.name)
    if not isinstance(name, str) or not _NAME.fullmatch(name.strip()):
        raise StoreError("invalid name: expected 1 to 128 letters, digits and . _ - :")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        found.warnings.append(f"{path}: expected a description, which tells models when to use the skill")
        description = ""
    hint, allowed = front.get("argument-hint"), front.get("allowed-tools")
    return Skill(
        name=name.strip(),
        description=" ".join(description.split()),
        path=path,
        source=place.source,
        user_invocable=front.get("user-invocable") is not False,
        for_models=front.get("disable-model-invocation") is not True,
        argument_hint=hint if isinstance(hint, str) else None,
        allowed_tools=names(allowed),
        project=place.project,
        plugin=place.plugin,
    )


def _command(path: Path, place: Place, suffix: str) -> Skill:
    """Read the command in a file, which the user calls as ``/folder:name``, or ``/plugin:folder:name``.

    Raises:
        StoreError: the file cannot be read, or has an invalid name.
    """
    text = read_text(path, place.project)
    try:
        front = front_matter(text)
    except StoreError:
        # Hints such as "[file] [line]" are common in these files, and not YAML.
        front = plain_fields(text)
    own_name = front.get("name") if suffix == PROMPT_SUFFIX else None
    *folders, file_name = path.relative_to(place.path).parts
    last = own_name if isinstance(own_name, str) and own_name.strip() else file_name.removesuffix(suffix)
    plugin = [place.plugin.name] if place.plugin is not None else []
    name = re.sub(r"\s+", "-", ":".join([*plugin, *folders, last.strip()]))
    if not _NAME.fullmatch(name):
        raise StoreError("invalid name: expected 1 to 128 letters, digits and . _ - :")
    description, hint = front.get("description"), front.get("argument-hint")
    if not isinstance(description, str):
        description = body(text).partition("\n")[0].lstrip("# ")[:LONGEST_DESCRIPTION]
    if isinstance(hint, list):
        # An unquoted "[file]".
        hint = f"[{', '.join(map(str, cast('list[object]', hint)))}]"
    return Skill(
        name=name,
        description=" ".join(description.split()),
        path=path,
        source=place.source,
        for_models=False,
        argument_hint=hint if isinstance(hint, str) else "instructions for the command",
        allowed_tools=names(front.get("allowed-tools", front.get("tools"))),
        project=place.project,
        plugin=place.plugin,
        is_command=True,
        ignored=tuple(name for name in IGNORED if name in front),
    )


def _absolute(cwd: Path, folder: str) -> Path:
    # Not Path.expanduser, which raises an error for unknown users.
    return cwd / os.path.expanduser(folder)
