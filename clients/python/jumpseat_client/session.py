"""A handle on one session: its prompts, its events and its settings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Unpack

from jumpseat_client.connection import Broadcast, Connection, require_success
from jumpseat_client.errors import SessionAborted, SessionFailed
from jumpseat_client.events import Event
from jumpseat_client.options import PromptOptions, to_params
from jumpseat_protocol.events import AssistantMessage, SessionError, SessionIdle, SessionMode, UserMessage


class Session:
    """A handle on one session, made by ``Client.create_session`` or ``Client.resume_session``.

    Attributes:
        id: the session's id.
        workspace_path: the session's own folder on the server's machine, if it has one.
    """

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        *,
        on_event: Callable[[Event], None] | None = None,
        on_detached: Callable[[Session], None],
    ) -> None:
        self.id = session_id
        self.workspace_path: str | None = None
        self._connection = connection
        self._on_event = on_event
        self._on_detached = on_detached
        self._events = Broadcast[Event]()

    async def request(self, method: str, **params: Any) -> Any:
        """Call any ``session.*`` method; ``sessionId`` is added, other parameters are named as on the wire.

        Raises:
            RpcError: the server answered with an error.
            ServerGoneError: the connection is down or went down meanwhile.
        """
        return await self._connection.request(method, {"sessionId": self.id, **params})

    # --- prompts ------------------------------------------------------------------------------------------------

    async def send(self, prompt: str, **options: Unpack[PromptOptions]) -> str:
        """Queue a prompt and return its message id without waiting for the response."""
        answer = await self.request("session.send", prompt=prompt, **to_params(options))
        return str(answer["messageId"])

    async def ask(self, prompt: str, **options: Unpack[PromptOptions]) -> str:
        """Send a prompt, wait until it is done and return the text of the last assistant message.

        Raises:
            SessionFailed: the prompt ended with an error.
            SessionAborted: the prompt was aborted.
        """
        answer = ""
        failure: SessionFailed | None = None
        async with aclosing(self.stream(prompt, **options)) as events:
            async for event in events:
                match event.payload:
                    case AssistantMessage(content=content) if event.agent_id is None:
                        answer = content
                    case SessionError() as error:
                        failure = SessionFailed(
                            error.reason, error_type=error.error_type, status_code=error.status_code
                        )
                    case SessionIdle(aborted=True):
                        failure = failure or SessionAborted()
                    case _:
                        pass
        # Raised only after `session.idle`: the session is then free for the caller's next prompt.
        if failure is not None:
            raise failure
        return answer

    async def stream(self, prompt: str, **options: Unpack[PromptOptions]) -> AsyncGenerator[Event]:
        """Send a prompt and yield its events, from its ``user.message`` to ``session.idle``.

        If more prompts are queued, the stream ends when the next one starts, because the server becomes idle only
        after the last. Failures and aborts are yielded as events, not raised.
        """
        async with self.events() as events:
            message_id = await self.send(prompt, **options)
            started = False
            async for event in events:
                match event.payload:
                    case UserMessage(message_id=id_) if id_ == message_id:
                        started = True
                    case UserMessage(delivery="queued") if started:
                        return
                    case SessionIdle(aborted=True):
                        # An abort empties the queue, so this prompt may never start.
                        started = True
                    case _:
                        pass
                if started:
                    yield event
                    if isinstance(event.payload, SessionIdle):
                        return

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Iterate over all events from now on: ``async with session.events() as events: async for event in events``


        The iteration ends when the session is detached. It raises :class:`ServerGoneError` when the connection
        ends.
        """
        return self._events.listen()

    async def messages(self) -> list[Event]:
        """Return the stored events, oldest first."""
        answer = await self.request("session.getMessages")
        return [Event.decode(record) for record in answer["events"]]

    async def abort(self, reason: str | None = None) -> None:
        """Stop the running prompt and drop the queued ones. Does nothing when idle."""
        await self.request("session.abort", **to_params({"reason": reason}))

    # --- settings -----------------------------------------------------------------------------------------------

    async def set_approve_all(self, enabled: bool) -> None:
        """Approve all tool calls without asking, or go back to asking."""
        answer = await self.request("session.permissions.setApproveAll", enabled=enabled)
        require_success(answer, "change the approvals")

    async def set_mode(self, mode: SessionMode) -> None:
        """Switch the agent mode."""
        await self.request("session.mode.set", mode=mode)

    async def set_model(self, model: str, *, reasoning_effort: str | None = None) -> None:
        """Use another model from the next model call on."""
        options = to_params({"reasoning_effort": reasoning_effort})
        await self.request("session.model.switchTo", modelId=model, **options)

    async def detach(self) -> None:
        """Leave the session, which stays on disk, and end its event iterations."""
        await self.request("session.detach")
        self._on_detached(self)
        self.close()

    # --- called by the client -----------------------------------------------------------------------------------

    def publish(self, event: Event) -> None:
        """Pass an event to ``on_event`` and to all event iterations. Called in the order of the wire."""
        if self._on_event is not None:
            self._on_event(event)
        self._events.publish(event)

    def close(self, failure: str | None = None) -> None:
        """End the event iterations, with a :class:`ServerGoneError` if ``failure`` is given."""
        self._events.close(failure)
