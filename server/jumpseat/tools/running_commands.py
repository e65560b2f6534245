"""The shell commands of a session, as tools use them. The ``shell`` folder implements both interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from jumpseat.agent.interfaces import BackgroundCommand


class RunningCommand(BackgroundCommand, Protocol):
    """A command of a session, as the tools use it that read its output and write to it."""

    @property
    def leaves_call(self) -> bool:
        """Return whether the call that waits for the command has to end before it."""
        ...

    @property
    def alive(self) -> bool:
        """Return whether any process of its group still runs, background children included."""
        ...

    @property
    def messages(self) -> list[str]:
        """Return what the sandbox did and refused, for the model."""
        ...

    @property
    def confined(self) -> bool | None:
        """Return whether the command is confined; ``None`` if the sandbox is off."""
        ...

    @property
    def has_stdin(self) -> bool: ...

    @property
    def unread_bytes(self) -> int: ...

    def unread(self) -> str:
        """Return the output since the last call."""
        ...

    async def write(self, text: str, *, eof: bool = False) -> None:
        """Write to standard input, and close it afterwards if ``eof``.

        Raises:
            OSError: the command has closed its standard input, or has none.
        """
        ...


class CommandRunner(Protocol):
    """Starts the commands of one session and knows those whose output may still be read."""

    def __iter__(self) -> Iterator[RunningCommand]: ...

    def get(self, shell_id: str) -> RunningCommand | None: ...

    async def probe(self) -> None:
        """Find out whether commands can be confined; :meth:`confines` needs that."""
        ...

    def confines(self) -> bool | None:
        """Return whether the next command will be confined; ``None`` if the sandbox is off."""
        ...

    @property
    def may_leave(self) -> bool:
        """Return whether commands that cannot work in a sandbox run outside, if they are approved."""
        ...

    @property
    def has_confined(self) -> bool:
        """Return whether confined commands run that may change the session's folders."""
        ...

    @property
    def sandbox_counts(self) -> bool:
        """Return whether confined commands are asked about as such."""
        ...

    async def start(
        self,
        command: str,
        *,
        cwd: Path,
        environ: dict[str, str],
        stdin: bool = False,
        call_id: str | None = None,
        outside: bool = False,
        hosts: Sequence[str] | None = None,
    ) -> RunningCommand:
        """Start ``command`` in ``bash -c``, with the null device as standard input unless ``stdin``.

        The command of a tool call (``call_id``) without ``stdin`` may run in a terminal of the user's editor. With
        ``outside``, the command is not confined. ``hosts`` are those that an approved command may reach, ``None``
        for a command that runs only because it is confined.

        Raises:
            OSError: bash or the working directory is missing, the system refuses another process, or the session
                requires a sandbox and there is none.
            ValueError: the command or the environment contains a NUL character.
            anyio.ClosedResourceError: the session is closing.
        """
        ...

    def leave(self, shell: RunningCommand) -> bool:
        """Leave a command running in the background; return whether the model will be told about its end."""
        ...

    async def close(self) -> None:
        """End all commands; no new ones can be started."""
        ...

    def release(self, shell: RunningCommand) -> None:
        """Forget a finished command whose end has been reported; one with background processes stays listed."""
        ...
