"""``task``: give a task to a sub-agent, and wait for its answer or continue."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, Literal

from msgspec.structs import replace
from pydantic import Field

from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.agent.subagents.definitions import startable_agents
from jumpseat.errors import ConfigError, InvalidRequestError, ProviderError
from jumpseat.tools.session_tool import BoundTool, Resources, SessionTool
from jumpseat.tools.tool import ToolArgs, ToolContext, ToolOutcome, failure

LISTED: Final = 120
"""The most characters of an agent's description that models are shown."""


class TaskArgs(ToolArgs):
    name: str = Field(description="Such as find-tests")
    agent_type: str
    description: str = Field(description="In a few words")
    prompt: str = Field(description="All that the agent has to know")
    mode: Literal["sync", "background"] = Field("sync", description="background: you will be told")
    model: str | None = None
    reasoning_effort: str | None = None


async def _run(session: Session, _resources: Resources, ctx: ToolContext, args: TaskArgs) -> ToolOutcome:
    # Imported with the first sub-agent.
    from jumpseat.agent.subagents import texts
    from jumpseat.agent.subagents.subagents import sub_agents

    if not args.prompt.strip() or not args.name.strip():
        return failure("Invalid arguments for `task`: name and prompt may not be empty")
    agents = sub_agents(session)
    try:
        await agents.check_model(session, args.agent_type, args.model)
        agent = agents.start(
            session,
            args.agent_type,
            args.prompt,
            name=args.name,
            description=args.description,
            mode=args.mode,
            call_id=ctx.call_id,
            model=args.model,
            reasoning_effort=args.reasoning_effort,
        )
    except (InvalidRequestError, ConfigError, ProviderError) as error:
        return failure(str(error))
    if args.mode == "background":
        return ToolOutcome(texts.STARTED.format(id=agent.id))
    await agents.wait(agent)
    if agent.moved.is_set():
        return ToolOutcome(texts.MOVED.format(id=agent.id))
    match agent.status:
        case "failed":
            return failure(agent.error or texts.NO_ANSWER)
        case "cancelled":
            return failure("The agent was cancelled.")
        case _:
            return ToolOutcome(agent.answer, detail=agent.answer)


TOOL: Final = SessionTool(
    name="task",
    description="Start a sub-agent. Calls in one answer work in parallel.",
    args=TaskArgs,
    position=212,
    read_only=True,
    run=_run,
    intention=lambda args: args.description,
)


def source(session: Session, resources: Resources) -> TaskTools:
    """Return the session's tool."""
    return TaskTools(session, resources)


class TaskTools:
    """The source of one session's tool, which is offered while there are agents that may be started."""

    __slots__ = ("_resources", "_searched_in", "_session", "_tool")

    def __init__(self, session: Session, resources: Resources) -> None:
        self._session = session
        self._resources = resources
        # The working directory in which agent files were searched.
        self._searched_in: Path | None = None
        self._tool: BoundTool[TaskArgs] | None = None

    def tools(self) -> Mapping[str, BoundTool[TaskArgs]]:
        depth = 0 if self._session.identity is None else self._session.identity.depth
        if depth >= self._session.services.agent_limits.depth:
            return {}
        types = startable_agents(self._session.settings)
        if not types:
            return {}
        described = _describe(tuple(types.items()))
        if self._tool is None or self._tool.definition is not described:
            self._tool = BoundTool(described, self._session, self._resources)
        return {TOOL.name: self._tool}

    async def ready(self) -> None:
        """Search for agents in files before the first request, and after the working directory has changed."""
        session, settings = self._session, self._session.settings
        if settings.cwd == self._searched_in or session.identity or not session.services.agent_limits.depth:
            return
        self._searched_in = settings.cwd
        if not settings.found_agents:
            settings.found_agents = await self._resources.find_agents(settings)

    async def close(self, grace_s: float) -> None:
        """Do nothing: sub-agents end with the session."""


class _TaskTool(SessionTool[TaskArgs], frozen=True, kw_only=True, dict=True):
    """The tool, with the agents that may be started as the values of an argument."""

    types: tuple[str, ...] = ()

    @cached_property
    def _spec(self) -> ToolSpec:
        spec = super()._spec
        schema = spec.parameters
        schema["properties"]["agent_type"]["enum"] = list(self.types)
        return replace(spec, schema=ToolSchema.of(schema))


@lru_cache(maxsize=16)
def _describe(agents: tuple[tuple[str, str], ...]) -> _TaskTool:
    """Return the tool of the sessions in which ``agents`` may be started, pairs of a name and a description."""
    lines = (f"- {name}: {text[:LISTED]}" if text else f"- {name}" for name, text in agents)
    return _TaskTool(
        name=TOOL.name,
        description="\n".join([TOOL.description, *lines]),
        args=TaskArgs,
        position=TOOL.position,
        read_only=TOOL.read_only,
        run=_run,
        intention=TOOL.intention,
        types=tuple(name for name, _ in agents),
    )
