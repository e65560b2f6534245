"""Skills on the disk: folders with a ``SKILL.md``, in the places where sessions, projects and users keep them.

The front matter of the file names and describes the skill; the rest is for the model, once the skill is loaded.
A file that is wrong costs that skill and is told of, never a session.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from jumpseat.agent.plugins import Plugin, Plugins
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Skill, SkillSource
from jumpseat.errors import StoreError
from jumpseat.store.front_matter import Found, body, front_matter, names, project_folders, read_text
from jumpseat_protocol.events import LoadedSkill

FILE: Final = "SKILL.md"
PROJECT_FOLDERS: Final = (".github/skills", ".claude/skills", ".agents/skills")
"""Where projects keep skills; new ones go into the first."""
MOST_SKILLS: Final = 500
"""Of one folder."""

_NAME: Final = re.compile(r"[\w.:-]{1,128}")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that skills are looked for in."""

    path: Path
    source: SkillSource
    project: Path | None = None
    plugin: Plugin | None = None


class SkillLibrary:
    """The skills of all sessions of a process. ``home`` and ``user_home`` are where the user's own lie."""

    def __init__(self, home: Path, user_home: Path, plugins: Plugins) -> None:
        self._home = home
        self._user_home = user_home
        self.plugins = plugins
        self._sessions: WeakKeyDictionary[Session, SessionSkills] = WeakKeyDictionary()

    def of(self, session: Session) -> SessionSkills:
        """Those of a live session."""
        skills = self._sessions.get(session)
        if skills is None:
            skills = self._sessions[session] = SessionSkills(session.settings, self)
        return skills

    def places(self, settings: SessionSettings) -> list[Place]:
        """Where the skills of a session are looked for, what counts most first."""
        if not settings.skills:
            return []
        named = [Place(_whole(settings.cwd, folder), "custom") for folder in settings.skill_directories]
        project = list(project_places(settings.cwd)) if settings.config_discovery else []
        plugins = [
            Place(folder, "plugin", plugin=plugin)
            for plugin in self.plugins.of(settings)
            for folder in plugin.skill_folders
        ]
        return [*named, *project, *self.personal(), *plugins]

    def personal(self) -> list[Place]:
        """Where the user keeps skills for all projects."""
        return [
            Place(self._home / "skills", "personal-copilot"),
            Place(self._user_home / ".agents" / "skills", "personal-agents"),
        ]


class SessionSkills:
    """The skills of one session, as ``settings`` have them."""

    def __init__(self, settings: SessionSettings, library: SkillLibrary) -> None:
        self._settings = settings
        self._library = library
        self._looked_for: tuple[object, ...] | None = None
        self._found = Found[Skill]()

    def all(self) -> list[Skill]:
        """All there are; they are looked for again only where that is asked for, or the settings have changed."""
        settings = self._settings
        wanted = (
            settings.cwd,
            settings.skills,
            settings.config_discovery,
            tuple(settings.skill_directories),
            tuple(self._library.plugins.folders(settings)),
        )
        if wanted != self._looked_for:
            self._looked_for, self._found = wanted, find_skills(self._library.places(settings))
        return self._found.items

    def listed(self) -> list[LoadedSkill]:
        """All of them as clients are told, disabled ones too."""
        return [one.listed(enabled=self.is_enabled(one.name)) for one in self.all()]

    def is_enabled(self, name: str) -> bool:
        return name not in self._settings.disabled_skills

    def reload(self) -> Found[Skill]:
        """Look for them again."""
        self._looked_for = None
        self.all()
        return self._found

    def body(self, skill: Skill) -> str:
        """What it tells the model; see :meth:`jumpseat.agent.skills.Skills.body`."""
        return body(read_text(skill.path))


def project_places(cwd: Path) -> Iterator[Place]:
    """Where a project keeps skills: the working directory first, then the folders above it up to its root."""
    for folder, source in project_folders(cwd):
        for name in PROJECT_FOLDERS:
            yield Place(folder / name, source, project=folder)


def find_skills(places: Iterable[Place]) -> Found[Skill]:
    """The skills in ``places``; of two with one name, the first counts."""
    found = Found[Skill]()
    for place in places:
        for path in _files(place.path, found):
            found.add(path, partial(_skill, path, place, found))
    return found


def _files(folder: Path, found: Found[Skill]) -> list[Path]:
    """The files of the skills in ``folder``, which may be one itself."""
    if os.path.lexists(folder / FILE):
        return [folder / FILE]
    names = found.entries(folder, lambda _name: True, MOST_SKILLS)
    return [folder / name / FILE for name in names if os.path.isfile(folder / name / FILE)]


def _skill(path: Path, place: Place, found: Found[Skill]) -> Skill:
    """Read what a file says of its skill.

    Raises:
        StoreError: it cannot be used.
    """
    front = front_matter(read_text(path))
    name = front.get("name", path.parent.name)
    if not isinstance(name, str) or not _NAME.fullmatch(name.strip()):
        raise StoreError("its name may have letters, digits and . _ - : only, 128 at most")
    description = front.get("description")
    if not isinstance(description, str) or not description.strip():
        found.warnings.append(f"{path}: it has no description, so a model cannot tell when to use it")
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


def _whole(cwd: Path, folder: str) -> Path:
    # Not Path.expanduser, which raises for an unknown user.
    return cwd / os.path.expanduser(folder)
