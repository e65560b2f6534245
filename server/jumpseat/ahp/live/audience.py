"""All connections of this protocol that watch a session, as one client of the session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Protocol

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from jumpseat.ahp.hub.channels import Subscriber
from jumpseat.ahp.states.values import JsonObject
from jumpseat.errors import ClientCallError
from jumpseat.rpc.client import ConnectedClient
from jumpseat.sessions.access import Access
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    UserInputResponse,
)
from jumpseat_protocol.events import AutoModeSwitchAnswer
from jumpseat_protocol.methods import PROTOCOL_VERSION
from jumpseat_protocol.wire import WireModel


class Reader(Subscriber, Protocol):
    """A connection that reads what it is sent, sooner or later."""

    def tell(self, created_by: str | None, method: str, params: JsonObject) -> None:
        """Send a notification, if the client sees sessions of the token ``created_by``."""
        ...

    @property
    def behind(self) -> bool: ...

    async def drain(self) -> None: ...


class Audience(ConnectedClient):
    """A client of a session, in the place of the connections that ``readers`` returns.

    Questions of the session are answered by actions, not here.
    """

    noun = "agent host client"

    def __init__(self, access: Access, tasks: TaskGroup, readers: Callable[[], list[Reader]]) -> None:
        super().__init__(access, PROTOCOL_VERSION, tasks)
        self.handshake_done = True
        self.gone = False
        self._readers = readers

    @property
    def label(self) -> str:
        """The name of the client in the log."""
        return "agent host"

    @property
    def connected(self) -> bool:
        return not self.gone

    @property
    def behind(self) -> bool:
        readers = self._readers()
        return bool(readers) and all(reader.behind for reader in readers)

    @property
    def has_slow_reader(self) -> bool:
        """Return whether much of what was sent to a connection is unread."""
        return any(reader.behind for reader in self._readers())

    async def drain(self) -> None:
        """Wait until one of the connections has read most of what it was sent. A slower one delays no other."""
        if not self.behind:
            await anyio.lowlevel.checkpoint()
            return
        async with anyio.create_task_group() as tasks:
            for reader in self._readers():
                tasks.start_soon(_drain_one, reader, tasks.cancel_scope)

    async def wait_until_read(self) -> None:
        await self.drain()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Do nothing: clients of this protocol know no such notifications."""

    def admit(self) -> None:
        """Do nothing: the connections have been admitted."""

    def catch_up(
        self, session_id: str, questions: Iterable[events.ExternalToolRequested | events.PermissionRequested]
    ) -> None:
        """Do nothing: open questions are in the log."""

    async def ask_user(
        self, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
    ) -> UserInputResponse:
        return await _answered_by_action()

    async def exit_plan_mode(self, params: ExitPlanModeParams) -> ExitPlanModeResponse:
        return await _answered_by_action()

    async def auto_mode_switch(self, params: AutoModeSwitchParams) -> AutoModeSwitchAnswer:
        return await _answered_by_action()

    async def _ask_json(self, method: str, params: WireModel) -> Any:
        raise ClientCallError(f"clients of the Agent Host Protocol do not answer {method!r}")


async def _drain_one(reader: Reader, waiting: anyio.CancelScope) -> None:
    await reader.drain()
    # A connection that has stopped reading is not waited for any longer, but has not read either.
    if not reader.behind:
        waiting.cancel()


async def _answered_by_action() -> NoReturn:
    """Wait until cancelled: clients answer by an action, with the id of the question."""
    await anyio.sleep_forever()
    raise ClientCallError("the wait was ended")
