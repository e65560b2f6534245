"""``skills.*`` and ``session.skills.*``: skills outside of and in sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import PathTexts
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class Skill(WireModel):
    """A skill of a session. ``path`` is its ``SKILL.md``; ``source`` is the kind of folder that it is in.

    ``command_name`` is the slash command, without the slash, by which users call it, if they may.
    """

    name: str
    """The name of the skill."""
    command_name: str | None = None
    """The slash command, without the slash."""
    description: str
    source: str
    """The kind of folder that it is in."""
    user_invocable: StrictBool
    """Whether people may invoke it by a slash command."""
    enabled: StrictBool
    path: str | None = None
    """The file of the skill."""
    plugin_name: str | None = None
    """The plugin that brings it."""
    argument_hint: str | None = None
    """What to write behind the slash command."""


class SkillsListResult(WireModel):
    skills: list[Skill]
    """The skills."""


class SkillNameParams(WireModel):
    session_id: str
    name: str = Field(min_length=1)
    """The name of the skill."""


class SkillsReloadResult(WireModel):
    """The problems that were found. A skill with an error is not loaded."""

    warnings: list[str]
    """What is wrong with skills that were loaded."""
    errors: list[str]
    """Why skills were not loaded."""


class InvokedSkill(WireModel):
    """A skill that was invoked; ``invoked_at_turn`` is the number of prompts before that."""

    name: str
    """The name of the skill."""
    path: str
    """The file of the skill."""
    content: str
    """The text that the model got."""
    allowed_tools: list[str] | None = None
    """The tools that the skill may use without a question."""
    invoked_at_turn: int
    """How many prompts came before."""


class SkillsInvokedResult(WireModel):
    skills: list[InvokedSkill]
    """The skills."""


class SkillsDiscoverParams(WireModel):
    """``exclude_host_skills`` excludes the user's own skills."""

    project_paths: PathTexts = Field(default_factory=list)
    """The folders of projects, as absolute paths."""
    skill_directories: PathTexts = Field(default_factory=list)
    """Further folders of skills."""
    exclude_host_skills: StrictBool = False
    """Whether the user's own skills are left out."""


class ServerSkill(Skill):
    """A skill outside of sessions."""

    project_path: str | None = None
    """The folder of the project."""


class SkillsDiscoverResult(WireModel):
    skills: list[ServerSkill]
    """The skills."""
    errors: list[str] | None = None
    """Why skills were not loaded."""


class SkillPathsParams(WireModel):
    project_paths: PathTexts = Field(default_factory=list)
    """The folders of projects, as absolute paths."""
    exclude_host_skills: StrictBool = False
    """Whether the user's own folders are left out."""


class SkillDiscoveryPath(WireModel):
    """A folder that is searched for skills. ``preferred_for_creation`` marks one folder of each scope."""

    path: str
    """The folder."""
    scope: Literal["project", "personal-copilot", "personal-agents", "custom"]
    """Whose skills it holds."""
    preferred_for_creation: StrictBool
    """Whether new skills belong there."""
    project_path: str | None = None
    """The folder of the project."""


class SkillPathsResult(WireModel):
    paths: list[SkillDiscoveryPath]
    """The folders."""


class SetDisabledSkillsParams(WireModel):
    disabled_skills: list[str]
    """The names of all skills that are switched off."""


class SetSkillDisabledParams(WireModel):
    name: str = Field(min_length=1)
    """The name of the skill."""
    disabled: StrictBool
    """Whether it is switched off."""


METHODS: Final[Mapping[str, Method]] = {
    "session.skills.list": Method(SessionParams, SkillsListResult, "List the skills of the session."),
    "session.skills.getInvoked": Method(SessionParams, SkillsInvokedResult, "List the skills that were invoked."),
    "session.skills.enable": Method(SkillNameParams, None, "Switch a skill on."),
    "session.skills.disable": Method(SkillNameParams, None, "Switch a skill off."),
    "session.skills.reload": Method(SessionParams, SkillsReloadResult, "Read the skills again."),
    "session.skills.ensureLoaded": Method(SessionParams, None, "Read the skills unless that was done."),
    "skills.discover": Method(SkillsDiscoverParams, SkillsDiscoverResult, "Find skills in projects and the home."),
    "skills.getDiscoveryPaths": Method(
        SkillPathsParams, SkillPathsResult, "List the folders that are searched for skills."
    ),
    "skills.config.setDisabledSkills": Method(
        SetDisabledSkillsParams, None, "Set which skills are switched off in new sessions."
    ),
    "skills.config.setSkillDisabled": Method(
        SetSkillDisabledParams, None, "Switch a skill on or off in new sessions."
    ),
}
