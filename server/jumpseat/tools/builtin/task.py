"""``task``: give a task to a sub-agent, and wait for its answer or go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, cast

import anyio.to_thread
from pydantic import Field

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.subagents.definitions import startable_agents
from jumpseat.errors import ConfigError, InvalidRequestError, ProviderError
from jumpseat.tools.resources import Resources
from jumpseat.tools.tool import BuiltinTool, Described, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.lazy_dataclasses import dataclass
from jumpseat_protocol.sessions import CustomAgentConfig

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


TOOL: Final = Described(
    name="task",
    description="Start a sub-agent. Calls in one answer work in parallel.",
    args=TaskArgs,
    position=212,
    read_only=True,
)


def source(session: Session, resources: Resources) -> TaskTools:
    """Return the session's tool."""
    return TaskTools(session, resources.find_agents)


class TaskTools:
    """The source of one session's tool, which is offered while there are agents that may be started."""

    def __init__(self, session: Session, find_agents: Callable[[SessionSettings], list[CustomAgentConfig]]) -> None:
        self._session = session
        self._find_agents = find_agents
        # The working directory in which agent files were searched.
        self._searched_in: Path | None = None
        self._types: dict[str, str] = {}
        self._tool: TaskTool | None = None

    def tools(self) -> Mapping[str, BuiltinTool[TaskArgs]]:
        depth = 0 if self._session.identity is None else self._session.identity.depth
        if depth >= self._session.services.agent_limits.depth:
            return {}
        types = startable_agents(self._session.settings)
        if not types:
            return {}
        if self._tool is None or types != self._types:
            self._types, self._tool = types, _tool(types, partial(_run, self._session))
        return {self._tool.name: self._tool}

    async def ready(self) -> None:
        """Search for agents in files before the first request, and after the working directory has changed."""
        session, settings = self._session, self._session.settings
        if settings.cwd == self._searched_in or session.identity or not session.services.agent_limits.depth:
            return
        self._searched_in = settings.cwd
        if not settings.found_agents:
            settings.found_agents = await anyio.to_thread.run_sync(self._find_agents, settings)

    async def close(self, grace_s: float) -> None:
        """Do nothing: sub-agents end with the session."""


@dataclass(frozen=True)
class TaskTool(BuiltinTool[TaskArgs]):
    """The tool, with the agents that may be started as the values of an argument."""

    types: tuple[str, ...] = ()

    @property
    def spec(self) -> ToolSpec:
        spec = super().spec
        properties = cast("dict[str, JsonObject]", spec.parameters["properties"])
        properties = properties | {"agent_type": {**properties["agent_type"], "enum": list(self.types)}}
        return replace(spec, parameters={**spec.parameters, "properties": properties})


def _tool(types: Mapping[str, str], run: partial[object]) -> TaskTool:
    lines = (f"- {name}: {text[:LISTED]}" if text else f"- {name}" for name, text in types.items())
    return TaskTool(
        name=TOOL.name,
        description="\n".join([TOOL.description, *lines]),
        args=TaskArgs,
        run=run,  # pyright: ignore[reportArgumentType]
        intention=lambda args: args.description,
        position=TOOL.position,
        read_only=TOOL.read_only,
        types=tuple(types),
    )


async def _run(session: Session, ctx: ToolContext, args: TaskArgs) -> ToolOutcome:
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
