"""The context of ACP's methods: the server's context, the editor, and the sessions that the editor has open."""

from __future__ import annotations

from msgspec import Struct, field

from jumpseat.acp.editor.editor import Editor
from jumpseat.acp.editor.editor_buffers import LentFiles, LentTerminals
from jumpseat.acp.editor.view import SessionView
from jumpseat.agent.session.session import Session
from jumpseat.sessions.context import Context


class AcpContext(Struct):
    """The context of a connection. ``server`` is the context of handlers shared with the Copilot protocol.

    ``views`` are those of the sessions of this process. In a cluster, ``elsewhere`` has the sessions that the
    editor has open, with the names of the guests at their owners: see :mod:`jumpseat.acp.replicas`.
    """

    server: Context
    editor: Editor
    views: dict[str, SessionView] = field(default_factory=dict[str, SessionView])
    elsewhere: dict[str, str] = field(default_factory=dict[str, str])

    def view(self, session_id: str) -> SessionView:
        """Return the view of a live session, opening it where the editor does not have it open yet.

        Raises:
            SessionNotFoundError: the session is not live.
            SessionInUseError: the session is live in another process.
        """
        session = self.server.registry.live(session_id)
        view = self.views.get(session_id)
        return view if view is not None else self.open(session)

    def open(self, session: Session) -> SessionView:
        """Open a new view of a session, in place of an earlier one."""
        view = SessionView(self.server, self.editor, session.id, str(session.settings.cwd))
        self.views[session.id] = view
        self._lend(session, view)
        return view

    def call_id(self, session_id: str, tool: str) -> str | None:
        """Return the id of the running call of ``tool``, or ``None`` where there is not exactly one."""
        view = self.views.get(session_id)
        calls = view.translator.running_of(tool) if view is not None else []
        return calls[0].id if len(calls) == 1 else None

    def _lend(self, session: Session, view: SessionView) -> None:
        """Give the session's tools the files and terminals that the editor offers."""
        attachment = session.clients.get(self.server.connection)
        if attachment is None:
            return
        fs = self.editor.capabilities.fs
        if fs.read_text_file or fs.write_text_file:
            attachment.files = LentFiles(self.editor, session.id)
        if self.editor.capabilities.terminal:
            attachment.terminals = LentTerminals(self.editor, session.id, view.show_terminal)
