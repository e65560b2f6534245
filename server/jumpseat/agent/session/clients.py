"""The clients that are attached to a session: what each provides, and the open requests to them.

Several clients may be attached at once. If a request needs one of them, the client that attached last is chosen, of
those that can handle the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import Final, NamedTuple

import anyio
import anyio.lowlevel
from msgspec import Struct

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.client import Attachment, Client, EditorFiles, EditorTerminals, ProvidedTool
from jumpseat.agent.clock import new_id
from jumpseat.agent.pending import Pending, PendingRequests
from jumpseat.errors import ClientCallError, InvalidRequestError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import (
    ElicitationResult,
    ExitPlanModeResponse,
    QueuedCommandResult,
    UserInputResponse,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer
from jumpseat_protocol.sessions import ClientCommand
from jumpseat_protocol.tools import HandlePendingToolCallParams

AUTO_MODE_SWITCH: Final = "auto_mode_switch.requested"


class CommandCall(Struct, frozen=True):
    """A command that runs in the client that provides it."""

    client: Client
    name: str


async def _drain_one(client: Client, waiting: anyio.CancelScope) -> None:
    await client.drain()
    # A client that has stopped reading is not waited for any longer, but has not read either.
    if not client.behind:
        waiting.cancel()


class _Offer(NamedTuple):
    """The combined offer of the attached clients."""

    capabilities: tuple[bool, bool]
    commands: dict[str, ClientCommand]
    tools: Mapping[str, ProvidedTool]


def _offers(attachment: Attachment) -> bool:
    """Return whether a client provides something of an :class:`_Offer`."""
    shows = attachment.handles_elicitation or attachment.renders_canvases
    return shows or bool(attachment.tools or attachment.commands)


class Clients:
    """The clients of one session.

    ``emit`` publishes an event to all clients, ``tell`` sends one to one client. ``model`` returns the name of the
    session's model.
    """

    def __init__(
        self,
        session_id: str,
        emit: Callable[[events.EventPayload], object],
        tell: Callable[[Client, events.EventPayload], object],
        model: Callable[[], str],
    ) -> None:
        self._session_id = session_id
        self._emit = emit
        self._tell = tell
        self._model = model
        self._attached: dict[Client, Attachment] = {}
        # The tools of all of them, until one with an offer comes or goes.
        self._tools: Mapping[str, ProvidedTool] | None = None
        self._interests: dict[str, tuple[Client, str]] = {}
        # Called after a client was attached or detached.
        self.on_change: list[Callable[[], None]] = []
        # Called when a client withdraws an interest, or detaches.
        self.on_fewer_interests: list[Callable[[], None]] = []
        self.external_calls: PendingRequests[ToolUseBlock, HandlePendingToolCallParams] = PendingRequests()
        self.user_inputs: PendingRequests[events.UserInputRequested, UserInputResponse] = PendingRequests()
        self.plans: PendingRequests[events.ExitPlanModeRequested, ExitPlanModeResponse] = PendingRequests()
        self.auto_mode_switches: PendingRequests[events.AutoModeSwitchRequested, AutoModeSwitchAnswer] = (
            PendingRequests()
        )
        self.elicitations: PendingRequests[events.ElicitationRequested, ElicitationResult] = PendingRequests()
        # Answered with an error message, or `None`.
        self.command_calls: PendingRequests[CommandCall, str | None] = PendingRequests()
        self.queued_commands: PendingRequests[str, QueuedCommandResult] = PendingRequests()

    async def drain(self) -> None:
        """Wait until one of the clients has read most of the data sent to it. A slower client delays no other."""
        clients = list(self._attached)
        if len(clients) == 1:
            await clients[0].drain()
        elif clients and all(client.behind for client in clients):
            async with anyio.create_task_group() as tasks:
                for client in clients:
                    tasks.start_soon(_drain_one, client, tasks.cancel_scope)
        else:
            # A turn of the event loop is for other sessions; it also sends what is queued.
            await anyio.lowlevel.checkpoint()

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._attached))

    def __len__(self) -> int:
        return len(self._attached)

    def __contains__(self, client: Client) -> bool:
        return client in self._attached

    def open_questions(self) -> list[events.EventPayload]:
        """Return the questions to people that are not answered yet, as they were published."""
        kinds = (self.user_inputs, self.plans, self.elicitations, self.auto_mode_switches)
        return [pending.question for requests in kinds for pending in requests.open()]

    def get(self, client: Client) -> Attachment | None:
        """Return what a client provides; ``None`` if it is not attached."""
        return self._attached.get(client)

    def any_speaks_protocol_2(self) -> bool:
        """Return whether a client of protocol 2 is attached."""
        return any(attachment.protocol == 2 for attachment in self._attached.values())

    def runs_tool_over_protocol_2(self, name: str) -> bool:
        """Return whether a client of protocol 2 is attached that runs the tool ``name`` itself."""
        return any(attachment.protocol == 2 and name in attachment.tools for attachment in self._attached.values())

    def attach(self, attachment: Attachment) -> None:
        """Attach a client; attaching again replaces what it provided before.

        Raises:
            InvalidRequestError: a tool has the name of another client's tool.
        """
        for other in self._attached.values() if attachment.tools else ():
            if other.client is attachment.client:
                continue
            both = sorted(other.tools.keys() & attachment.tools.keys())
            if both:
                raise InvalidRequestError(f"tool {both[0]!r} is already registered by another client")
        # Most clients of many offer nothing, and the offers of all others need not be compared for each.
        was = self._attached.get(attachment.client)
        before = self._offer() if _offers(attachment) or (was is not None and _offers(was)) else None
        attachment.canvas_provider = attachment.canvas_provider or self._connection_id(attachment.client)
        self._attached[attachment.client] = attachment
        self._tell_changes(before)

    def detach(self, client: Client) -> None:
        """Detach a client. Requests to it stay open for a client that resumes the session."""
        was = self._attached.get(client)
        before = self._offer() if was is not None and _offers(was) else None
        self._attached.pop(client, None)
        self._interests = {
            handle: interest for handle, interest in self._interests.items() if interest[0] is not client
        }
        self._release_commands(client)
        self._tell_changes(before)

    def _connection_id(self, client: Client) -> str:
        """Return the name of a client's connection: the one that it has in this session, or the first free one."""
        if (attachment := self._attached.get(client)) is not None and attachment.canvas_provider:
            return attachment.canvas_provider
        taken = {attachment.canvas_provider for attachment in self._attached.values()}
        return next(name for n in count(1) if (name := f"connection:{n}") not in taken)

    def _capabilities(self) -> tuple[bool, bool]:
        return self.can_elicit(), self.can_render_canvases()

    def _offer(self) -> _Offer:
        return _Offer(self._capabilities(), self.commands(), self.tools())

    def _tell_changes(self, before: _Offer | None) -> None:
        """Tell what the clients provide now; ``before`` is ``None`` if that is the same."""
        if before is not None:
            self._tools = None
            self._tell_capabilities(before.capabilities)
            self._tell_commands(before.commands)
            self._tell_tools(before.tools)
        for handle_change in self.on_change:
            handle_change()

    def can_elicit(self) -> bool:
        """Return whether an attached client can show a form."""
        return any(attachment.handles_elicitation for attachment in self._attached.values())

    def can_render_canvases(self) -> bool:
        """Return whether an attached client shows canvases to its user."""
        return any(attachment.renders_canvases for attachment in self._attached.values())

    def attachments(self) -> list[Attachment]:
        """Return what each client provides; the client that attached last comes first."""
        return list(self._latest_first())

    def set_handles_permissions(self, client: Client, handles: bool) -> None:
        """Set whether an attached client answers permission requests."""
        if (attachment := self._attached.get(client)) is not None:
            attachment.handles_permissions = handles

    def can_ask_permission(self) -> bool:
        """Return whether an attached client answers permission requests."""
        return any(attachment.handles_permissions for attachment in self._attached.values())

    def tools(self) -> Mapping[str, ProvidedTool]:
        """Return the tools of all clients by name; the same object until one with an offer comes or goes."""
        if self._tools is None:
            attached = self._attached.values()
            self._tools = {name: tool for attachment in attached for name, tool in attachment.tools.items()}
        return self._tools

    def commands(self) -> dict[str, ClientCommand]:
        """Return the commands of all attached clients by name; the client that attached last wins."""
        return {
            name: command for attachment in self._attached.values() for name, command in attachment.commands.items()
        }

    def ask_command(self, name: str, args: str) -> Pending[CommandCall, str | None] | None:
        """Ask the client that provides a command to run it; returns ``None`` if no attached client does.

        The caller must close the request.
        """
        client = self._latest_client(lambda attachment: name in attachment.commands)
        if client is None:
            return None
        pending = self.command_calls.ask(CommandCall(client, name))
        text = f"/{name} {args}".rstrip()
        self._tell(client, events.CommandExecute(request_id=pending.id, command=text, command_name=name, args=args))
        return pending

    def add_interest(self, client: Client, event_type: str) -> str:
        """Register that a client answers events of a type; returns a handle for :meth:`remove_interest`."""
        handle = new_id()
        self._interests[handle] = (client, event_type)
        return handle

    def remove_interest(self, handle: str, event_type: str | None = None) -> bool:
        """Remove an interest; returns ``False`` if the handle is unknown, or for another type of event."""
        if handle not in self._interests or event_type not in (None, self._interests[handle][1]):
            return False
        del self._interests[handle]
        self._release_questions()
        return True

    def has_interest(self, event_type: str) -> bool:
        """Return whether a client answers events of a type."""
        return any(interest == event_type for _, interest in self._interests.values())

    async def ask_token(self, provider_name: str) -> str:
        """Ask a client for the bearer token of a provider: the last attached one of those that provide tokens.

        Raises:
            ClientCallError: no client provides tokens, or the client failed.
        """
        client = self._latest_client(lambda attachment: attachment.has_tokens)
        if client is None:
            raise ClientCallError("no attached client provides tokens")
        return await client.provider_token(self._session_id, provider_name)

    def set_provides_tokens(self, client: Client) -> None:
        """Register that an attached client provides tokens of providers."""
        if (attachment := self._attached.get(client)) is not None:
            attachment.has_tokens = True

    def user_input_client(self) -> Client | None:
        """Return the client that asks its user questions, if any."""
        return self._latest_client(lambda attachment: attachment.handles_user_input)

    def plan_client(self) -> Client | None:
        """Return the client that shows plans to its user, if any."""
        return self._latest_client(lambda attachment: attachment.handles_plans)

    def auto_mode_client(self) -> Client | None:
        """Return the client that asks its user whether to switch to auto mode, if any.

        Clients that answer the event are left out.
        """
        direct = {client for client, interest in self._interests.values() if interest == AUTO_MODE_SWITCH}
        return self._latest_client(
            lambda attachment: attachment.handles_auto_mode_switch and attachment.client not in direct
        )

    def can_ask_for_auto_mode(self) -> bool:
        """Return whether a client can be asked about auto mode, or answers the event."""
        return self.has_interest(AUTO_MODE_SWITCH) or self.auto_mode_client() is not None

    def hook_client(self) -> Client | None:
        """Return the client that runs hooks, if any."""
        return self._latest_client(lambda attachment: attachment.has_hooks)

    def transform_client(self) -> Client | None:
        """Return the client that rewrites sections of the system message, if any."""
        return self._latest_client(lambda attachment: attachment.has_transforms)

    def files(self) -> EditorFiles | None:
        """Return the editor files that file tools work on, if a client provides them."""
        return next((attachment.files for attachment in self._latest_first() if attachment.files is not None), None)

    def terminals(self) -> EditorTerminals | None:
        """Return the editor terminals that commands run in, if a client provides them."""
        return next(
            (attachment.terminals for attachment in self._latest_first() if attachment.terminals is not None), None
        )

    def _tell_capabilities(self, before: tuple[bool, bool]) -> None:
        now = self._capabilities()
        can_elicit, can_render = now
        # A single client knows its own capabilities from the response to its request.
        if now != before and (len(self._attached) > 1 or any(before)):
            canvases = can_render if can_render != before[1] else None
            self._emit(events.CapabilitiesChanged(ui=events.UiChanges(elicitation=can_elicit, canvases=canvases)))
        if not can_elicit and self.elicitations.open():
            self.elicitations.close_all(ElicitationResult(action="cancel"))

    def _tell_commands(self, before: dict[str, ClientCommand]) -> None:
        now = self.commands()
        # A single client knows its own commands.
        if now != before and (len(self._attached) > 1 or before) and self._attached:
            infos = [
                events.CommandInfo(name=command.name, description=command.description) for command in now.values()
            ]
            self._emit(events.CommandsChanged(commands=infos))

    def _tell_tools(self, before: Mapping[str, ProvidedTool]) -> None:
        now = self.tools()
        # A single client knows its own tools.
        if now != before and (len(self._attached) > 1 or before) and self._attached:
            self._emit(events.SessionToolsUpdated(model=self._model()))

    def _release_commands(self, client: Client) -> None:
        """End the command calls to a client that detached."""
        for pending in self.command_calls.open():
            if pending.question.client is client:
                self.command_calls.answer(pending.id, "the client that provides this command has disconnected")
        self._release_questions()

    def _release_questions(self) -> None:
        """Settle the questions whose events no attached client answers any more."""
        if not self.has_interest("command.queued"):
            self.queued_commands.close_all(QueuedCommandResult(handled=False))
        if self.auto_mode_switches.open() and not self.can_ask_for_auto_mode():
            self.auto_mode_switches.close_all("no")
        for release in self.on_fewer_interests:
            release()

    def _latest_client(self, is_able: Callable[[Attachment], bool]) -> Client | None:
        """Return the client that attached last of those that are able to handle a request and do not stand in."""
        able = [attachment for attachment in self._latest_first() if is_able(attachment)]
        # `min` returns the first of equal ones.
        return min(able, key=lambda attachment: attachment.stands_in).client if able else None

    def _latest_first(self) -> Iterable[Attachment]:
        return reversed(list(self._attached.values()))

    def close(self) -> None:
        """Settle all open questions that clients no longer answer when the session closes."""
        self.elicitations.close_all(ElicitationResult(action="cancel"))
        self.auto_mode_switches.close_all("no")
        self.command_calls.close_all("the session was closed")
