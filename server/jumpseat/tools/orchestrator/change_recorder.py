"""Record the files that one session's tools change: those of the file tools, and those of commands if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from jumpseat.agent.session.session import Session
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.session_sandbox import note_edit, own_programs
from jumpseat.tools.shell.shells import Shells
from jumpseat.tools.workspace_files import FileEdit
from jumpseat_protocol import events

if TYPE_CHECKING:
    from jumpseat.tools.workspace_watch import WorkspaceWatch


class ChangeRecorder:
    """The recorder of one session. The watch over its workspace begins with the first command.

    ``folder`` is that of the session, if it is on the disk; ``shells`` are its commands.
    """

    def __init__(self, session: Session, environment: Environment, folder: Path | None, shells: Shells) -> None:
        self._session = session
        self._environment = environment
        self._folder = folder
        self._shells = shells
        self._watch: WorkspaceWatch | None = None

    @property
    def _tracks(self) -> bool:
        return self._session.settings.options.enable_file_change_tracking

    def record(self, edit: FileEdit, call_id: str) -> None:
        """Record a change that a file tool has made."""
        self._record_all([edit], call_id)
        sandboxes = self._environment.sandboxes
        if sandboxes is not None and edit.exists:
            # What a model has changed is not run outside of its sandbox unasked, however it was changed.
            note_edit(self._session, sandboxes, edit.place)

    async def begin(self, cwd: Path) -> None:
        """Look at the workspace before a command, if the session tracks files or has to know whether any change."""
        if not self._tracks and not self._asks_for_changes():
            return
        if self._watch is None:
            from jumpseat.tools.workspace_watch import WorkspaceWatch

            found = self._record_all if self._tracks else self._note
            watch = WorkspaceWatch(found, self._ignored, self._folder, self.is_running, self._warn)
            self._watch = watch if self._tracks else watch.without_contents()
        await self._watch.begin(cwd)

    async def end(self) -> None:
        """Record what a command has changed until now."""
        if self._watch is not None:
            await self._watch.end()

    async def settle(self) -> None:
        """Record what commands have changed until the end of a prompt. Not cancellable, but bounded."""
        if self._watch is not None:
            with anyio.CancelScope(shield=True):
                await self._watch.settle()

    def close(self) -> None:
        """Forget the contents of the workspace."""
        if self._watch is not None:
            self._watch.close()

    async def _ignored(self, root: Path) -> frozenset[str]:
        session, environment = self._session, self._environment
        from jumpseat.tools.files import ignored_paths

        return await ignored_paths(
            root, environment.child_environ(session.id), own_programs(session, environment.sandboxes)
        )

    def is_running(self) -> bool:
        """Return whether a command of the session still runs."""
        return any(shell.alive for shell in self._shells)

    def _asks_for_changes(self) -> bool:
        """Return whether the model may have to be reminded of a check, and no change is known yet."""
        root = self._session.root
        described = root.project.last
        known = described is None or described[1].check is not None
        return self._session.reminds_of_checks and root.work is None and known

    def _note(self, edits: Sequence[FileEdit]) -> None:
        if self._session.reminds_of_checks:
            # Imported with the first change.
            from jumpseat.agent.session.checks import note_changes

            note_changes(self._session, (edit.path for edit in edits))

    def _record_all(self, edits: Sequence[FileEdit], call_id: str | None = None) -> None:
        self._note(edits)
        prompt, record = self._session.cause, self._environment.record_changes
        if prompt is not None and record is not None:
            record(self._session.root, prompt, edits, call_id)

    def _warn(self, message: str) -> None:
        if not self._tracks:
            return
        self._session.emit(events.SessionWarning(warning_type="file_tracking", message=message))
