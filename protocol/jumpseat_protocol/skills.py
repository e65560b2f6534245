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
    command_name: str | None = None
    description: str
    source: str
    user_invocable: StrictBool
    enabled: StrictBool
    path: str | None = None
    plugin_name: str | None = None
    argument_hint: str | None = None


class SkillsListResult(WireModel):
    skills: list[Skill]


class SkillNameParams(WireModel):
    session_id: str
    name: str = Field(min_length=1)


class SkillsReloadResult(WireModel):
    """The problems that were found. A skill with an error is not loaded."""

    warnings: list[str]
    errors: list[str]


class InvokedSkill(WireModel):
    """A skill that was invoked; ``invoked_at_turn`` is the number of prompts before that."""

    name: str
    path: str
    content: str
    allowed_tools: list[str] | None = None
    invoked_at_turn: int


class SkillsInvokedResult(WireModel):
    skills: list[InvokedSkill]


class SkillsDiscoverParams(WireModel):
    """``exclude_host_skills`` excludes the user's own skills."""

    project_paths: PathTexts = Field(default_factory=list)
    skill_directories: PathTexts = Field(default_factory=list)
    exclude_host_skills: StrictBool = False


class ServerSkill(Skill):
    """A skill outside of sessions."""

    project_path: str | None = None


class SkillsDiscoverResult(WireModel):
    skills: list[ServerSkill]
    errors: list[str] | None = None


class SkillPathsParams(WireModel):
    project_paths: PathTexts = Field(default_factory=list)
    exclude_host_skills: StrictBool = False


class SkillDiscoveryPath(WireModel):
    """A folder that is searched for skills. ``preferred_for_creation`` marks one folder of each scope."""

    path: str
    scope: Literal["project", "personal-copilot", "personal-agents", "custom"]
    preferred_for_creation: StrictBool
    project_path: str | None = None


class SkillPathsResult(WireModel):
    paths: list[SkillDiscoveryPath]


class SetDisabledSkillsParams(WireModel):
    disabled_skills: list[str]


class SetSkillDisabledParams(WireModel):
    name: str = Field(min_length=1)
    disabled: StrictBool


METHODS: Final[Mapping[str, Method]] = {
    "session.skills.list": Method(SessionParams, SkillsListResult),
    "session.skills.getInvoked": Method(SessionParams, SkillsInvokedResult),
    "session.skills.enable": Method(SkillNameParams, None),
    "session.skills.disable": Method(SkillNameParams, None),
    "session.skills.reload": Method(SessionParams, SkillsReloadResult),
    "session.skills.ensureLoaded": Method(SessionParams, None),
    "skills.discover": Method(SkillsDiscoverParams, SkillsDiscoverResult),
    "skills.getDiscoveryPaths": Method(SkillPathsParams, SkillPathsResult),
    "skills.config.setDisabledSkills": Method(SetDisabledSkillsParams, None),
    "skills.config.setSkillDisabled": Method(SetSkillDisabledParams, None),
}
