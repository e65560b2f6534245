"""The modes of a chat that change what happens without a question: accepting edits, and planning."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import anyio

from jumpseat_client import Session
from jumpseat_protocol.events import SessionMode

ModeName: TypeAlias = Literal["ask", "edits", "plan"]

CYCLE: Final[tuple[ModeName, ...]] = ("ask", "edits", "plan")
"""The order in which shift-tab changes the mode."""
_EDITS: Final = {"kind": "write"}
"""The rule that allows all changes of files in the session's folders."""


class Modes:
    """The modes of one session. ``yolo`` means that no call needs approval."""

    def __init__(self, session: Session, *, yolo: bool) -> None:
        self.session_mode: SessionMode = "interactive"
        """The mode of the session, which the server changes, too."""
        self.accepts_edits = False
        self._session = session
        self._yolo = yolo
        self._one_at_a_time = anyio.Lock()
        self._coming: ModeName | None = None

    @property
    def current(self) -> ModeName:
        return "plan" if self.session_mode == "plan" else "edits" if self.accepts_edits else "ask"

    def shown(self) -> str:
        """Return the modes for the status line; empty if every change is asked about."""
        names = {"plan": "plan mode", "autopilot": "autopilot", "interactive": ""}[self.session_mode]
        edits = "accepts all calls" if self._yolo else "accepts edits" if self.accepts_edits else ""
        return ", ".join(name for name in (names, edits) if name)

    async def change(self, mode: ModeName) -> None:
        """Change the mode.

        Raises:
            RpcError: the server refused the change.
        """
        async with self._one_at_a_time:
            await self.accept_edits(mode == "edits")
            if (mode == "plan") != (self.session_mode == "plan"):
                self.session_mode = "plan" if mode == "plan" else "interactive"
                await self._session.set_mode(self.session_mode)
            self._coming = None

    def following(self) -> ModeName:
        """Return the mode that shift-tab changes to, which is the mode after the one that it is changing to now."""
        self._coming = CYCLE[(CYCLE.index(self._coming or self.current) + 1) % len(CYCLE)]
        return self._coming

    async def accept_edits(self, on: bool) -> None:
        """Allow the changes of files in the session's folders without a question, or ask again.

        This is a rule of the session: rules that deny, or that require a person to decide, take precedence, and
        files that decide about later calls are asked about.
        """
        if on != self.accepts_edits:
            change = {"add": [_EDITS]} if on else {"remove": [_EDITS]}
            await self._session.request("session.permissions.modifyRules", scope="session", **change)
            self.accepts_edits = on
