"""``skill``: load the instructions for one kind of task.

The names and descriptions of the skills are part of the tool's description: a session without skills, or without
the tool, spends no tokens on them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from pydantic import Field

from jumpseat.agent.session.session import Session
from jumpseat.agent.session.skill_calls import load_skill, skill_context
from jumpseat.agent.skills import Skill, Skills
from jumpseat.errors import StoreError
from jumpseat.tools.session_tool import BoundTool, Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure

log = logging.getLogger(__name__)

LISTING: Final = 1200
"""Characters for names with descriptions; longer descriptions are cut to fit."""
NAMES: Final = 400
"""Characters for the names of skills whose descriptions do not fit."""
SHORTEST: Final = 40
"""No description is cut to fewer characters than this."""


class SkillArgs(ToolArgs):
    skill: str = Field(description="Its name")


async def _run(session: Session, resources: Resources, ctx: ToolContext, args: SkillArgs) -> ToolOutcome:
    name = args.skill.strip().removeprefix("/")
    usable = {skill.name: skill for skill in _usable(resources.skills(session))}
    skill = usable.get(name)
    if skill is None:
        return failure(f"There is no skill {name[:128]!r}. Skills: {', '.join(usable) or 'none'}.")
    try:
        message = load_skill(session, skill, "agent-invoked")
    except StoreError as error:
        return failure(f"The skill {name!r} cannot be loaded: {error}.")
    return ToolOutcome(
        f'Skill "{skill.name}" loaded successfully. Follow the instructions in the skill context.',
        messages=[message],
    )


TOOL: Final = SessionTool(
    name="skill",
    description="Load a skill: instructions for one kind of task. Do so first where one fits.",
    args=SkillArgs,
    position=230,
    read_only=True,
    run=_run,
    intention=lambda args: f"Load the skill {args.skill}",
)


def source(session: Session, resources: Resources) -> SkillTool:
    """Return the session's tool."""
    return SkillTool(session, resources)


class SkillTool:
    """The source of one session's tool, which is offered while there are skills to load."""

    __slots__ = ("_listed", "_resources", "_session", "_skills", "_tool")

    def __init__(self, session: Session, resources: Resources) -> None:
        self._session = session
        self._resources = resources
        self._skills = resources.skills(session)
        self._listed: list[Skill] = []
        self._tool: BoundTool[SkillArgs] | None = None

    def tools(self) -> Mapping[str, BoundTool[SkillArgs]]:
        listed = _usable(self._skills)
        if not listed:
            return {}
        if self._tool is None or listed != self._listed:
            described = replace(TOOL, description=f"{TOOL.description}\n{listing(listed)}")
            self._listed, self._tool = listed, BoundTool(described, self._session, self._resources)
        return {TOOL.name: self._tool}

    def instructions(self, offered: Collection[str]) -> list[str]:
        """Return the full texts of the skills that the custom agent preloads."""
        agent = self._session.settings.custom_agent
        return [] if agent is None else list(self._preloaded(agent.skills or ()))

    async def ready(self) -> None:
        """Return at once."""

    async def close(self, grace_s: float) -> None:
        """Do nothing: nothing runs between calls."""

    def _preloaded(self, names: Sequence[str]) -> Iterator[str]:
        known = (
            {skill.name: skill for skill in self._skills.all() if self._skills.is_enabled(skill.name)}
            if names
            else {}
        )
        for name in names:
            try:
                if name in known:
                    yield skill_context(known[name], self._skills.body(known[name]))
                else:
                    log.warning("session %s: the custom agent names an unknown skill %r", self._session.id, name)
            except StoreError as error:
                log.warning("session %s: skill %r of the custom agent: %s", self._session.id, name, error)


def _usable(skills: Skills) -> list[Skill]:
    return [skill for skill in skills.all() if skill.for_models and skills.is_enabled(skill.name)]


def listing(skills: Sequence[Skill]) -> str:
    """Return one line per skill with its name and description, in at most about ``LISTING`` characters."""
    longest = max((len(skill.description) for skill in skills), default=0)
    if sum(len(skill.name) + len(skill.description) + 5 for skill in skills) > LISTING:
        longest = max(
            LISTING // len(skills) - 5 - sum(len(skill.name) for skill in skills) // len(skills), SHORTEST
        )
    lines: list[str] = []
    room = LISTING
    rest = list(skills)
    while rest:
        one = rest[0]
        line = f"- {one.name}: {_cut(one.description, longest)}" if one.description else f"- {one.name}"
        room -= len(line) + 1
        if room < 0 and lines:
            break
        lines.append(line)
        rest.pop(0)
    if rest:
        lines.append(f"- and {_names(rest)}")
    return "\n".join(lines)


def _names(skills: Sequence[Skill]) -> str:
    """Return the names that fit into ``NAMES`` characters, and the number of the others."""
    names: list[str] = []
    room = NAMES
    for skill in skills:
        room -= len(skill.name) + 2
        if room < 0:
            return ", ".join([*names, f"{len(skills) - len(names)} more"])
        names.append(skill.name)
    return ", ".join(names)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
