"""The background work of one session: its sub-agents (start them, wait for them, send them messages, end them), and
the commands that were left running.

Each works in its own session (:mod:`jumpseat.agent.subagents.session`). The start of an agent is followed by
one end, and nothing of it runs when the session closes. An agent is told about those that it has started in the
background by a notification, unless it has read their answers before.
"""

from __future__ import annotations

import logging
import uuid
from functools import partial

import anyio
from msgspec.structs import replace

from jumpseat.agent.clock import utc_now
from jumpseat.agent.session.queue_items import Prompt, Run, Stopped
from jumpseat.agent.session.session import Session
from jumpseat.agent.session.sub_agents import AgentLimits
from jumpseat.agent.subagents import texts
from jumpseat.agent.subagents.background_commands import BackgroundCommands
from jumpseat.agent.subagents.definitions import find_agent, startable_agents, user_settings_of, with_user_settings
from jumpseat.agent.subagents.outcome import end_event, error_of
from jumpseat.agent.subagents.revival import revive, with_choice
from jumpseat.agent.subagents.roster import Roster, lower
from jumpseat.agent.subagents.session import SubAgentSession, answer_of, settings_for
from jumpseat.agent.subagents.subagent import AgentMode, Exchange, SubAgent
from jumpseat.errors import InvalidRequestError, SessionNotFoundError, StoreError
from jumpseat_protocol import events

log = logging.getLogger(__name__)


class SubAgents(Roster):
    """The sub-agents of the session ``root``, which is that of the main agent."""

    def __init__(self, root: Session, limits: AgentLimits) -> None:
        super().__init__(root, limits)
        self._closed = False
        self._ended = anyio.Event()
        self.commands = BackgroundCommands(root.services.tasks, self._continue, limits.command_wait_s)

    @property
    def working(self) -> bool:
        """Return whether an agent works, or a command for which the session waits."""
        return self.commands.awaited or any(agent.status == "running" for agent in self._agents.values())

    # --- starting ---------------------------------------------------------------------------------------------

    def start(
        self,
        parent: Session,
        type_name: str,
        prompt: str,
        *,
        name: str,
        description: str,
        mode: AgentMode,
        call_id: str | None = None,
        model: str | None = None,
        reasoning_effort: str | None = None,
    ) -> SubAgent:
        """Start an agent of a type from the session of another agent; returns at once.

        Raises:
            InvalidRequestError: there is no such type, or a limit is reached; models can read the message.
            StoreError: the log cannot be written.
        """
        # An agent has a copy of the settings of its start; the user's settings may have changed since.
        current = replace(parent.settings, sub_agent_settings=self._root.settings.sub_agent_settings)
        config = find_agent(current, type_name)
        if config is None:
            known = ", ".join(startable_agents(current)) or "none"
            raise InvalidRequestError(f"Unknown agent_type: {type_name[:100]}. Valid types are: {known}")
        depth = 1 if parent.identity is None else parent.identity.depth + 1
        self._check_limits(depth)
        config = with_user_settings(current, with_choice(config, model, reasoning_effort))
        agent_id = str(uuid.uuid4())
        agent = SubAgent(
            id=agent_id,
            type=type_name,
            name=config.display_name or name if type_name in self._custom_names() else name,
            description=description,
            call_id=call_id or agent_id,
            parent_id=None if parent.identity is None else parent.identity.id,
            started_at=utc_now(),
            mode=mode,
            requested_model=model,
            requested_effort=reasoning_effort,
        )
        settings = settings_for(current, config)
        session = agent.session = SubAgentSession(
            self._root, agent.identity(depth, parent.cause), settings, partial(self._handle_event, agent)
        )
        session.is_new = True
        agent.metrics = session.metrics
        of_model = settings.for_model().options
        agent.model = of_model.model
        session.emit(
            events.SubagentStarted(
                tool_call_id=agent.call_id,
                agent_name=agent.type,
                agent_display_name=agent.name,
                agent_description=description,
                model=agent.model,
                agent_type=agent.type,
                execution_mode=mode,
                resumable=False,
                parent_id=agent.parent_id,
            )
        )
        self._agents[agent_id] = agent
        session.emit(
            events.SubagentConfigured(
                model=agent.model or texts.DEFAULT_MODEL,
                reasoning_effort=of_model.reasoning_effort,
                multi_turn=True,
            )
        )
        self._begin(agent, session, prompt, agent.parent_id or self._root.id)
        return agent

    async def check_model(self, parent: Session, type_name: str, model: str | None) -> None:
        """Check that an agent can be started with the model of the user's settings, or else with ``model``, if any.

        Raises:
            JumpseatError: the model is not available.
        """
        of_user = user_settings_of(self._root.settings, type_name)
        model = of_user.model if of_user is not None and of_user.model is not None else model
        if model is None:
            return
        wanted = parent.settings.with_options(model=model, agent=None)
        resolved = await parent.services.models.resolve(wanted, ask_token=parent.clients.ask_token)
        if not resolved.listed:
            # Unlike the model of a session, this one is chosen by a model, or long before the agent starts.
            raise InvalidRequestError(f"No agent was started: the provider has no model {model!r}.")

    def _custom_names(self) -> set[str]:
        """Return the names of the custom agents. The session of a sub-agent has its own kind among them, too."""
        return {agent.name for agent in self._root.settings.agents}

    def _check_limits(self, depth: int) -> None:
        of_user = self._root.settings.sub_agent_settings
        deepest = lower(self.limits.depth, None if of_user is None else of_user.max_depth)
        if self._closed:
            raise SessionNotFoundError(self._root.id)
        if depth > deepest:
            raise InvalidRequestError(f"No agent was started: agents may start others {deepest} deep.")
        self._check_running()

    async def wait(self, agent: SubAgent) -> None:
        """Wait until ``agent`` has ended or was moved to the background; end it if the wait is cancelled."""

        async def wait_for(event: anyio.Event, scope: anyio.CancelScope) -> None:
            await event.wait()
            scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait_for, agent.moved, tasks.cancel_scope)
                tasks.start_soon(wait_for, agent.done, tasks.cancel_scope)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.cancel(agent)
            raise

    # --- working ----------------------------------------------------------------------------------------------

    def send(self, agent: SubAgent, message: str, sender: str) -> str | None:
        """Send a message to an agent; return why it takes none, if so. A working agent gets the message afterwards.

        An agent of an earlier process continues the conversation that the log has.

        Raises:
            StoreError: the log cannot be written.
        """
        if self._closed or not (agent.status in ("running", "idle") or agent.was_interrupted):
            return f"Agent {agent.id} takes no messages: its status is {agent.status}."
        if agent.status == "running" and agent.session is not None:
            self._ask(agent, agent.session, message, sender)
            return None
        if agent.session is None and agent.past is None:
            return f"Agent {agent.id} takes no messages any more: only the last {self.limits.kept} agents are kept."
        try:
            self._check_running()
            session = agent.session or revive(self._root, self._agents, agent, partial(self._handle_event, agent))
        except InvalidRequestError as error:
            return str(error)
        # Nobody waits for this answer.
        agent.mode = "background"
        self._begin(agent, session, message, sender)
        return None

    def _begin(self, agent: SubAgent, session: SubAgentSession, message: str, sender: str) -> None:
        agent.begin(anyio.current_time())
        self._ask(agent, session, message, sender)
        self._root.services.tasks.start_soon(self._supervise, agent, session)
        self._report_change()

    def _ask(self, agent: SubAgent, session: SubAgentSession, message: str, sender: str) -> None:
        by = self._agents.get(sender)
        asking = by.session if by is not None and by.session is not None else self._root
        # The work that is asked for in plan mode stays in plan mode, also when the one who asks has ended.
        mode: events.AgentMode | None = "plan" if asking.reads_only else None
        prompt = Prompt(message, source=f"agent-{sender}", agent_mode=mode)
        agent.exchanges.append(Exchange(message, run=prompt.run))
        session.send(prompt)

    async def _supervise(self, agent: SubAgent, session: SubAgentSession) -> None:
        """Wait until an agent has done its work, for a limited time, and publish how that has ended."""
        try:
            run: Run | None = None
            with anyio.move_on_after(self.limits.timeout_s):
                run = await self._work(agent, session)
            if run is None:
                agent.stop_reason = texts.TIMED_OUT.format(seconds=self.limits.timeout_s)
                await self._stop(agent, session)
                run = await self._work(agent, session)
            self._end(agent, session, run)
        finally:
            # Also if the process ends: others wait for this.
            agent.done.set()

    async def _work(self, agent: SubAgent, session: SubAgentSession) -> Run:
        """Wait for the answers to all messages, and tell the agent about those that it has started."""
        run = Run()
        while True:
            open_exchange = next((one for one in agent.exchanges if one.run is not None), None)
            if open_exchange is not None and open_exchange.run is not None:
                run = open_exchange.run
                await run.done.wait()
                open_exchange.answer, open_exchange.run = answer_of(run), None
                continue
            child = next((one for one in self.children(agent.id) if one.status == "running" or one.unread), None)
            if child is None or run.aborted or run.error is not None or session.queue.closed:
                return run
            await child.done.wait()
            if child.unread and not session.queue.closed:
                prompt = Prompt("", notification=self._notification(child))
                session.send(prompt)
                run = prompt.run
                await run.done.wait()
                agent.exchanges[-1].answer = answer_of(run) or agent.exchanges[-1].answer

    def _end(self, agent: SubAgent, session: SubAgentSession, run: Run) -> None:
        """Publish the end of an agent's work, and tell the agent that has started it."""
        now_s = anyio.current_time()
        duration_s = now_s - agent.begun_s
        agent.active_s += duration_s
        agent.active_since, agent.idle_since = None, utc_now()
        agent.error = error_of(agent, run)
        if agent.error is not None:
            agent.status = "failed"
        else:
            agent.status = "cancelled" if run.aborted else "idle"
        if agent.status != "idle":
            agent.ended_at = agent.idle_since
        if not agent.ended:
            self._publish_end(agent, session, int(duration_s * 1000))
        agent.unread = agent.status != "cancelled" and not agent.waited_for
        agent.done.set()
        self._release_old()
        self._forget_ended()
        self._continue()

    def _continue(self) -> None:
        """Tell the main agent what it does not know yet, or end its work if nothing is left, unless it works."""
        self._report_change()
        if not self._root.queue.running and not self.go_on():
            self._root.end_background_work()
        self._ended.set()
        self._ended = anyio.Event()

    def _publish_end(self, agent: SubAgent, session: SubAgentSession, duration_ms: int) -> None:
        agent.ended = True
        try:
            session.emit(end_event(agent, duration_ms))
        except StoreError as error:
            log.error("session %s: cannot write the end of a sub-agent to the log: %s", self._root.id, error)

    def _handle_event(self, agent: SubAgent, event: events.Event) -> None:
        agent.count(event.payload)
        if event.persisted:
            agent.last_event_id = event.id
        most = self.limits.tokens
        if most is not None and agent.tokens > most and agent.stop_reason is None and agent.session is not None:
            agent.stop_reason = texts.TOO_MANY_TOKENS.format(tokens=most)
            self._root.services.tasks.start_soon(self._stop, agent, agent.session)

    # --- telling the agent that has started an agent ----------------------------------------------------------

    def go_on(self) -> bool:
        """Tell the main agent about the next agents and commands that have ended, in a separate run.

        Returns:
            Whether the session has more to do: such a run, or work to wait for.
        """
        if self._closed or self._root.queue.closed:
            return False
        agent = next((agent for agent in self.children(None) if agent.unread), None)
        untold = [self._notification(agent)] if agent is not None else self.commands.take_untold()
        if not untold:
            return self.working
        for notification in untold:
            self._root.send(Prompt("", notification=notification))
        # A paused queue lets nothing run.
        return self._root.queue.running or self.working

    def take_untold(self) -> list[events.SystemNotification]:
        """Return what the main agent has to be told before its next prompt."""
        agents = [self._notification(agent) for agent in self.children(None) if agent.unread]
        return [*agents, *self.commands.take_untold()]

    def _notification(self, agent: SubAgent) -> events.SystemNotification:
        agent.unread = False
        return texts.notification(agent)

    # --- ending -----------------------------------------------------------------------------------------------

    def abort(self, stopped: Stopped) -> Stopped:
        """Abort all agents; returns an awaitable that ends with ``stopped`` and all of them.

        Commands run on, but the session neither waits for them nor tells the model about their ends.
        """
        self.forget_commands()
        if not self._root.queue.running and not self.working:
            self._root.end_background_work()
        agents = [agent for agent in self if agent.status == "running"]
        stopping = [agent.session.abort("session_aborted") for agent in agents if agent.session is not None]
        return Stopped(stopped.wait, *(one.wait for one in stopping), *(agent.done.wait for agent in agents))

    def forget_commands(self) -> None:
        """Let commands in the background run on, without waiting for them or telling the model about their ends."""
        self.commands.forget()

    async def cancel(self, agent: SubAgent) -> bool:
        """End an agent with those that it has started; returns ``False`` if it has failed or was ended before."""
        if agent.status == "idle":
            agent.status, agent.ended_at, agent.unread = "cancelled", utc_now(), False
            self._report_change()
            return True
        if agent.status != "running" or agent.session is None:
            return False
        await self._stop(agent, agent.session)
        await agent.done.wait()
        return True

    async def cancel_all(self) -> int:
        """End all agents in the background that work; returns their number."""
        working = [agent for agent in self.children(None) if agent.status == "running" and not agent.waited_for]
        if working:
            ended = events.AgentInterrupted(
                activity="background_agent", turn=0, elapsed_ms=0, interrupted_agent_count=len(working)
            )
            self._root.emit(ended)
        for agent in working:
            await self.cancel(agent)
        return len(working)

    async def _stop(self, agent: SubAgent, session: SubAgentSession) -> None:
        """Abort an agent's run and the agents that it has started."""
        aborted = session.abort("cancelled")
        for child in self.children(agent.id):
            if child.session is not None and child.status == "running":
                await self._stop(child, child.session)
        await aborted

    def move_to_background(self, agent: SubAgent) -> bool:
        """Let the call that waits for an agent end; returns ``False`` if none does."""
        if not agent.waited_for or agent.status != "running":
            return False
        agent.mode = "background"
        agent.moved.set()
        self._report_change()
        return True

    def remove(self, agent: SubAgent) -> bool:
        """Forget an agent that was ended; returns ``False`` for any other."""
        if agent.status != "cancelled":
            return False
        del self._agents[agent.id]
        self._report_change()
        return True

    async def wait_until_settled(self) -> None:
        """Wait until no agent and no awaited command works, and the main agent has been told about all."""
        queue = self._root.queue
        while self._root.working:
            await (queue.wait() if queue.running else self._ended.wait())

    async def close(self, grace_s: float | None) -> None:
        """End all agents and what they have running."""
        self._closed = True
        self.commands.forget()
        async with anyio.create_task_group() as tasks:
            for agent in self:
                if agent.session is not None:
                    tasks.start_soon(agent.session.close, grace_s)
        for agent in self:
            if agent.status == "running":
                await agent.done.wait()
        if not self._root.queue.running:
            self._root.end_background_work()

    def _release_old(self) -> None:
        """Close the sessions of the agents that have been idle for longest, beyond those that are kept."""
        idle = [agent for agent in self if agent.session is not None and agent.status != "running"]
        idle.sort(key=lambda agent: agent.idle_since or "")
        for agent in idle[: max(0, len(idle) - self.limits.kept)]:
            session, agent.session = agent.session, None
            if session is not None:
                self._root.services.tasks.start_soon(session.close)

    def _report_change(self) -> None:
        if not self._closed:
            self._root.emit(events.BackgroundTasksChanged())


def sub_agents(session: Session) -> SubAgents:
    """Return the sub-agents of a session, or of the session of a sub-agent; made with the first call."""
    root = session.root
    if root.agents is None:
        root.agents = SubAgents(root, root.services.agent_limits)
    assert isinstance(root.agents, SubAgents), "only this function sets them"
    return root.agents
