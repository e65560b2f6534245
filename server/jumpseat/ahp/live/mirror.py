"""A live session as its clients see it: the session's events become actions on its two channels.

One mirror is the client of the session for all connections of this protocol. It is opened for the first of them,
and closed when no client subscribes to its channels any more, or may come back to them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from jumpseat.agent.clock import new_id, utc_now
from jumpseat.agent.session.queue_items import Prompt, QueueItem
from jumpseat.agent.session.session import Session
from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.hub.hub import Hub
from jumpseat.ahp.live.audience import Audience, Reader
from jumpseat.ahp.live.background import Background
from jumpseat.ahp.live.changesets import OpenChangesets
from jumpseat.ahp.live.client_marks import Keeper, Kept
from jumpseat.ahp.states.channels import REDUCERS
from jumpseat.ahp.states.chat import reduce_chat
from jumpseat.ahp.states.session import reduce_session
from jumpseat.ahp.states.values import IDLE, Action, JsonObject, State, changed, present
from jumpseat.ahp.translation import attachments, config
from jumpseat.ahp.translation.changesets import catalogue
from jumpseat.ahp.translation.queues import Waiting, queue_actions
from jumpseat.ahp.translation.session_events import SessionTranslator, apply
from jumpseat.ahp.translation.summaries import (
    actions_for_session,
    actions_without_chat,
    chat_summary,
    live_summary,
    with_activity,
)
from jumpseat.ahp.translation.terminals import Closed, Opened, Step, has_exited
from jumpseat.ahp.translation.uris import PROVIDER, chat_uri, kind_of, session_uri
from jumpseat.errors import JumpseatError
from jumpseat.sessions.access import Access
from jumpseat.sessions.context import Context
from jumpseat.store.session.sessions import shorten
from jumpseat_protocol import events
from jumpseat_protocol.events import Event
from jumpseat_protocol.mcp import McpOauthToken

log = logging.getLogger(__name__)

_SILENT: Final = frozenset(
    ("chat/delta", "chat/reasoning", "chat/toolCallDelta", "chat/toolCallContentChanged", "chat/usage")
)
"""The frequent actions, of which the channel of the session shows nothing."""


_FROM_EVENTS: Final = frozenset(("chat", "terminal"))
"""The kinds of the further channels of which the log tells."""

_CUSTOMIZING: Final = (events.SessionSkillsLoaded, events.McpServersLoaded, events.McpServerStatusChanged)
"""The events that tell of other customizations."""


class Cause(NamedTuple):
    """A request of a client: the kind of action that will report it, and its subject."""

    kind: str
    subject: str = ""


class Mirror(Audience):
    """The channels of one session. ``readers`` returns the connections that subscribe to them."""

    def __init__(
        self,
        hub: Hub,
        session_id: str,
        access: Access,
        tasks: TaskGroup,
        readers: Callable[[Iterable[str]], list[Reader]],
        on_summary: Callable[[Mirror, JsonObject], None],
    ) -> None:
        super().__init__(access, tasks, lambda: readers(self.uris))
        self.session_id = session_id
        self.session_uri, self.chat_uri = session_uri(session_id), chat_uri(session_id)
        self.translator = SessionTranslator(session_id)
        self.ctx: Context | None = None
        self.source: Session | None = None
        """The session whose events arrive, until the last of them, when it is no longer live."""
        self.created_at = ""
        self.changesets = OpenChangesets(self)
        self.background = Background(self)
        self.keeper = Keeper(self)
        self._hub = hub
        self._on_summary = on_summary
        self._causes: dict[Cause, Origin] = {}
        # The events that arrive before the channels are open.
        self._early: list[Event] | None = []
        self._stored: set[str] = set()
        self.customized = anyio.Event()
        """Set when the customizations may have changed, and when the mirror is closed."""
        self.changing_servers = anyio.Lock()
        """Held while an MCP server is started or stopped for a client: in the order in which they ask."""
        self.tokens: dict[str, str] = {}
        """The tokens that clients have sent for MCP servers, by their addresses, until they are used."""
        self.interests: list[str] = []
        """The handles of the interest in questions of MCP servers, while a client has sent a token."""
        self.commands: dict[str, anyio.CancelScope] = {}
        """The slash commands that run, by the ids of their turns."""
        self.cancelling: dict[str, Origin] = {}
        """The dispatches that cancel them."""

    @property
    def session(self) -> Session:
        """The session.

        Raises:
            SessionNotFoundError: the session is no longer live.
            SessionInUseError: the session is live in another process.
        """
        return self.context.registry.live(self.session_id)

    @property
    def context(self) -> Context:
        """The parts of the server, for work on behalf of this session."""
        assert self.ctx is not None
        return self.ctx

    @property
    def uris(self) -> tuple[str, str]:
        """The channels that are open as long as the mirror is; the further ones are parts of the first."""
        return self.session_uri, self.chat_uri

    # --- opening ------------------------------------------------------------------------------------------------

    async def open(self, *, lifecycle: str, kept: Kept) -> None:
        """Open the channels in the state to which the log leads, and apply what has happened since it was read.

        ``kept`` is what clients have kept with the session.
        """
        session = self.source = self.session
        storage = self.context.registry.storage(session)
        workspace = storage.workspace
        title = (workspace.name or workspace.summary if workspace is not None else None) or ""
        self.created_at = session.started_at
        chat: State = {
            "resource": self.chat_uri,
            "title": title,
            "status": IDLE,
            "modifiedAt": session.started_at,
            "turns": [],
            **present({"draft": kept.draft}),
        }
        states = await self._fold(chat)
        access = storage.created_by
        self._hub.open(self.chat_uri, states[self.chat_uri], reduce_chat, access)
        state = self._session_state(session, states, title, lifecycle)
        state["status"] |= kept.marks
        self._hub.open(self.session_uri, state, reduce_session, access)
        self._show_parts(states)
        self._release()
        for question in session.clients.open_questions():
            self._handle(Event.of(new_id(), utc_now(), None, question))
        self.sync_queue()
        self._follow_chat(self.chat_uri)
        self.background.renew()
        await self.changesets.adopt(self._hub.parts(self.session_uri))

    async def _fold(self, chat: State) -> dict[str, State]:
        """Return the states of all chats after the events of the log, and continue with its translator.

        ``chat`` is the main one before these events.
        """
        session = self.session
        records = self.context.process.secrets.mask_records(
            self.context.registry.storage(session).log.read().records
        )
        translator = SessionTranslator(self.session_id)
        self._stored = seen = set[str]()

        states = {self.chat_uri: chat}

        def fold() -> None:
            for record in records:
                payload = events.decode_payload(record["type"], record.get("data"))
                event_id = str(record.get("id") or "")
                seen.add(event_id)
                if not isinstance(payload, events.UnknownPayload):
                    time = str(record.get("timestamp") or "")
                    event = Event.of(event_id, time, None, payload, record.get("agentId"))
                    for step in translator.steps(event):
                        apply(states, step)

        # A long log takes longer than other connections should wait.
        await anyio.to_thread.run_sync(fold)
        # The calls of the log were those of clients that may be gone.
        translator.owners.update(self.translator.owners)
        self.translator = translator
        translator.join(is_working=session.working)
        if not session.working and not session.open_questions():
            for step in translator.end_turns():
                apply(states, step)
        return states

    def _show_parts(self, states: dict[str, State]) -> None:
        """Open the further channels that are not open in these states, and close those that are no more."""
        for uri in self._hub.parts(self.session_uri):
            if uri not in states and kind_of(uri) in _FROM_EVENTS:
                self.close_part(uri)
        for uri, state in states.items():
            if uri not in self.uris and self.state_of(uri) != state:
                self.open_part(uri, state)

    def _release(self) -> None:
        """Handle the events that have arrived while the log was read, except those that it contained."""
        early, self._early = self._early or [], None
        stored, self._stored = self._stored, set()
        for event in early:
            if event.id not in stored:
                self.deliver(self.session_id, event)

    async def _rewind(self) -> None:
        """Show the turns that are left after the log was cut."""
        try:
            left = await self._fold(changed(self.chat, turns=[], activeTurn=None))
        except JumpseatError as error:
            log.warning("session %s: cannot read the log that was cut: %s", self.session_id, error)
            self._release()
            return
        self._show_turns(self.chat_uri, left, self._causes.pop(Cause("chat/truncated"), None))
        for uri in left.keys() & set(self._hub.parts(self.session_uri)):
            if kind_of(uri) == "chat":
                if self.state_of(uri)["turns"] != left[uri]["turns"]:
                    self._show_turns(uri, left)
            elif has_exited(left[uri]) and not has_exited(self.state_of(uri)):
                # It has ended while the log was read.
                continue
            left[uri] = self.state_of(uri)
        self.translator.keep_shown(left)
        self._show_parts(left)
        self.changesets.renew()
        self.background.renew()
        self._release()

    def _show_turns(self, uri: str, states: dict[str, State], origin: Origin | None = None) -> None:
        """Show the turns of a chat in place of those that it had."""
        self.publish({"type": "chat/truncated"}, origin, uri)
        if turns := states[uri]["turns"]:
            self.publish({"type": "chat/turnsLoaded", "turns": turns}, None, uri)

    def _session_state(self, session: Session, states: dict[str, State], title: str, lifecycle: str) -> State:
        return {
            "provider": PROVIDER,
            "title": title,
            "status": states[self.chat_uri]["status"],
            "lifecycle": lifecycle,
            "activeClients": [],
            "chats": [chat_summary(state) for uri, state in states.items() if kind_of(uri) == "chat"],
            "defaultChat": self.chat_uri,
            "workingDirectories": [attachments.uri_of(str(session.settings.cwd))],
            "config": {"schema": config.SCHEMA, "values": self.config_values()},
            "changesets": catalogue(self.session_id),
        }

    def config_values(self) -> JsonObject:
        """Return the values of the session's configuration."""
        session = self.session
        return config.values_of(
            session.settings.mode, session.settings.options.model, allow_all=session.permissions.approve_all
        )

    def follow(self) -> None:
        """Follow the session from now on that was opened again."""
        self.source = self.session
        self.sync_queue()
        self.changesets.renew()
        self.background.renew()

    def end(self) -> None:
        """Follow the session no longer."""
        self.gone = True
        self.customized.set()
        self.background.close()

    def become_ready(self) -> None:
        """Tell that the session can run turns."""
        self.publish({"type": "session/ready"})

    # --- events -------------------------------------------------------------------------------------------------

    def deliver(self, session_id: str, event: Event) -> None:
        """Publish the actions for an event of the session."""
        if self._early is not None:
            self._early.append(event)
        else:
            self._handle(event)

    def _handle(self, event: Event) -> None:
        if isinstance(event.payload, events.PendingMessagesModified):
            self.sync_queue()
            return
        if isinstance(event.payload, events.SessionSnapshotRewind):
            self._early = []
            self.tasks.start_soon(self._rewind)
            return
        self.background.expect(event.payload)
        for step in self.translator.steps(event):
            self.take(step)
        if self.tokens or self.interests:
            self._log_in(event.payload)
        if isinstance(event.payload, events.UserMessage):
            self._name()
        if isinstance(event.payload, _CUSTOMIZING):
            self.customized.set()
        if isinstance(event.payload, events.SessionIdle):
            self._causes.clear()
        self.changesets.note(event.payload)
        self.background.note(event.payload)

    def take(self, step: Step) -> None:
        """Carry out a step of the translation."""
        if isinstance(step, Opened):
            self.open_part(step.uri, step.state)
        elif isinstance(step, Closed):
            self.close_part(step.uri)
        else:
            self.publish(step.action, self._origin_of(step.action), step.uri)

    def _name(self) -> None:
        """Let a session without a name have its first prompt as its title, as in lists of stored sessions."""
        prompt = self.source.history.first_prompt if self.source is not None else None
        if prompt is not None and not self.state["title"]:
            self.publish({"type": "session/titleChanged", "title": shorten(prompt)})

    def _log_in(self, payload: events.EventPayload) -> None:
        host = self.context.mcp.get(self.session)
        match payload:
            case events.McpOauthRequired() if host is not None and payload.server_url in self.tokens:
                token = McpOauthToken(kind="token", access_token=self.tokens.pop(payload.server_url))
                host.credentials.oauth.answer(payload.request_id, token)
            case events.McpServerStatusChanged(status="needs-auth") if host is not None and self.tokens:
                # It had given up before the token came.
                host.retry_auth(payload.server_name)
            case events.McpOauthCompleted() | events.McpServerStatusChanged(status="connected") if not self.tokens:
                while self.interests:
                    self.session.clients.remove_interest(self.interests.pop())
            case _:
                pass

    def publish(self, action: Action, origin: Origin | None = None, uri: str | None = None) -> bool:
        """Publish an action; return ``False`` if it changes nothing.

        Without ``uri``, the channel is that of the main chat or of the session, by the type of the action.
        """
        is_of_chat = action["type"].startswith("chat/")
        uri = uri or (self.chat_uri if is_of_chat else self.session_uri)
        if not self._hub.publish(uri, action, origin):
            return False
        if is_of_chat and action["type"] not in _SILENT:
            self._follow_chat(uri)
        elif action["type"] == "session/titleChanged":
            # Lists have it for the main chat, too.
            self._follow_chat(self.chat_uri)
        elif action["type"] in ("session/isReadChanged", "session/isArchivedChanged"):
            self._on_summary(self, self.summary())
        return True

    def is_wanted(self, uri: str) -> bool:
        """Return whether a client subscribes to a channel, or may come back to it."""
        return self._hub.is_wanted([uri])

    @property
    def working(self) -> bool:
        """Return whether the session works."""
        return self.source is not None and self.source.working

    def open_part(self, uri: str, state: State) -> None:
        """Open a further channel of the session. A chat joins the session's catalogue."""
        self._hub.open_part(self.session_uri, uri, state, REDUCERS[kind_of(uri)])
        if kind_of(uri) == "chat":
            self.publish({"type": "session/chatAdded", "summary": chat_summary(state)})
            self._follow_chat(uri)

    def close_part(self, uri: str) -> None:
        """Close a further channel of the session."""
        if kind_of(uri) == "chat":
            for action in actions_without_chat(self.state, uri):
                self.publish(action)
        self._hub.close_part(self.session_uri, uri)

    def _follow_chat(self, uri: str) -> None:
        """Bring the channel of the session in step with that of a chat."""
        session, chat = self._hub.get(self.session_uri), self._hub.get(uri)
        if session is None or chat is None:
            return
        # No action changes the title of a chat: lists have that of the session for the main one.
        title = {"title": session.state["title"]} if uri == self.chat_uri else {}
        actions = list(actions_for_session(session.state, {**chat.state, **title}))
        for action in actions:
            self._hub.publish(self.session_uri, action)
        if uri != self.chat_uri:
            return
        session.state = with_activity(session.state, chat.state)
        if actions:
            self._on_summary(self, self.summary())

    def summary(self) -> JsonObject:
        """Return the session's entry in lists."""
        return live_summary(self.session_uri, self.state, self.chat, self.created_at)

    @property
    def state(self) -> State:
        """The state of the session's channel."""
        return self.state_of(self.session_uri)

    @property
    def chat(self) -> State:
        """The state of the main chat's channel."""
        return self.state_of(self.chat_uri)

    def chats(self) -> list[State]:
        """Return the states of the main chat and of those of sub-agents."""
        uris = (self.chat_uri, *self._hub.parts(self.session_uri))
        return [self.state_of(uri) for uri in uris if kind_of(uri) == "chat"]

    def state_of(self, uri: str) -> State:
        """Return the state of a channel of the session, an empty one if it is closed."""
        channel = self._hub.get(uri)
        return channel.state if channel is not None else {}

    # --- echoes -------------------------------------------------------------------------------------------------

    def expect(self, cause: Cause, origin: Origin) -> None:
        """Remember which dispatch the action about ``cause`` will be the echo of."""
        self._causes[cause] = origin

    def withdraw(self, cause: Cause) -> bool:
        """Return whether no action has told about ``cause``, and expect none any more."""
        return self._causes.pop(cause, None) is not None

    def refuse(self, action: Action, origin: Origin, reason: str) -> None:
        """Tell the sender of an action on one of the main channels that it is refused."""
        uri = self.chat_uri if action["type"].startswith("chat/") else self.session_uri
        self._hub.refuse(origin, uri, action, reason)

    def _origin_of(self, action: Action) -> Origin | None:
        if not self._causes:
            return None
        kind = action["type"]
        if kind in ("chat/toolCallConfirmed", "chat/toolCallComplete"):
            subject: str = action["toolCallId"]
        else:
            subject = action.get("requestId") or action.get("turnId") or ""
        if kind == "session/configChanged":
            subject = next(iter(action["config"]))
        return self._causes.pop(Cause(kind, subject), None)

    # --- waiting messages ---------------------------------------------------------------------------------------

    def sync_queue(self) -> None:
        """Publish the changes of the queue."""
        if self.source is None:
            return
        waiting, steering = self.source.queue.waiting()
        queued = [self._waiting(item) for item in waiting]
        for action in list(queue_actions(self.chat, queued, [self._waiting(prompt) for prompt in steering])):
            self.publish(action)

    def _waiting(self, item: QueueItem) -> Waiting:
        if not isinstance(item, Prompt):
            return Waiting(item.id, {"text": item.display_text, "origin": {"kind": "user"}})
        kind = "user" if item.source is None else "agent"
        message: JsonObject = {"text": item.shown, "origin": {"kind": kind}}
        if (shown := attachments.of_prompt(item.attachments)) is not None:
            message["attachments"] = shown
        return Waiting(item.interaction_id, message)
