"""What the methods of one connection share: the server behind it, what the editor can do, its sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from anyio.abc import TaskGroup

from jumpseat.acp.translation.params import ClientCapabilities
from jumpseat.agent.session.session import Session
from jumpseat.sessions.context import Context
from jumpseat_protocol.wire import WireModel

if TYPE_CHECKING:
    from jumpseat.acp.editor.view import SessionView

R = TypeVar("R", bound=WireModel)


class Editor(Protocol):
    """The other end of the connection."""

    @property
    def tasks(self) -> TaskGroup: ...

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        ...

    async def ask(self, method: str, params: dict[str, Any], result: type[R]) -> R:
        """Send a request and wait for its answer.

        Raises:
            ClientCallError: the editor failed, is gone, or answered what cannot be read.
        """
        ...


@dataclass
class AcpContext:
    """One per connection. ``capabilities`` are known from ``initialize`` on."""

    ctx: Context
    connection: Editor
    capabilities: ClientCapabilities = field(default_factory=ClientCapabilities)
    client_name: str | None = None
    views: dict[str, SessionView] = field(default_factory=dict[str, "SessionView"])

    def view(self, session_id: str) -> SessionView:
        """The view of a session that this editor has open.

        Raises:
            SessionNotFoundError: it is not live, or not open here.
        """
        session = self.ctx.registry.live(session_id)
        found = self.views.get(session_id)
        return found if found is not None else self.open(session)

    def open(self, session: Session) -> SessionView:
        """Begin to follow a session anew."""
        from jumpseat.acp.editor.view import SessionView

        view = self.views[session.id] = SessionView(self, session.id, str(session.settings.cwd))
        self._lend(session, view)
        return view

    def _lend(self, session: Session, view: SessionView) -> None:
        """Give the session's tools what the editor has offered."""
        attachment = session.clients.get(self.ctx.connection)
        if attachment is None:
            return
        from jumpseat.acp.editor.lent import LentFiles, LentTerminals

        fs = self.capabilities.fs
        if fs.read_text_file or fs.write_text_file:
            attachment.files = LentFiles(self, session.id)
        if self.capabilities.terminal:
            attachment.terminals = LentTerminals(self, view)
