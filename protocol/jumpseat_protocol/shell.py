"""``session.shell.*``: commands of the user, which run beside the agent's; and the notifications about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.wire import Method, WireModel

OUTPUT: Final = "shell.output"
EXIT: Final = "shell.exit"


class ShellExecParams(WireModel):
    """``cwd`` is the session's by default, and relative to it. ``timeout`` is in milliseconds, 0 is none."""

    session_id: str
    command: str
    """The command line."""
    cwd: PathText | None = None
    timeout: int | None = Field(None, ge=0)
    """The time limit in milliseconds; 0 for none."""


class ShellExecResult(WireModel):
    process_id: str
    """The id of the process, for the other methods."""


class ShellKillParams(WireModel):
    session_id: str
    process_id: str
    """The id of the process."""
    signal: Literal["SIGTERM", "SIGKILL", "SIGINT"] = "SIGTERM"
    """The signal to send."""


class ShellKillResult(WireModel):
    killed: StrictBool
    """Whether the process was running."""


class UserCommandParams(WireModel):
    """``request_id`` is the client's choice, for ``session.shell.cancelUserRequested``."""

    session_id: str
    request_id: str = Field(min_length=1)
    command: str
    """The command line."""


class UserCommandResult(WireModel):
    """``output`` is stdout and stderr. A cancelled command has no exit code."""

    tool_call_id: str
    success: StrictBool
    output: str
    """Its output."""
    exit_code: int | None = None
    """Its exit code."""
    error: str | None = None


class CancelUserCommandParams(WireModel):
    session_id: str
    request_id: str


class CancelUserCommandResult(WireModel):
    cancelled: StrictBool
    """Whether the command was running."""


class ShellOutputParams(WireModel):
    """A piece of the output of a process of ``session.shell.exec``, sent to the client that started it."""

    process_id: str
    """The id of the process."""
    stream: Literal["stdout", "stderr"]
    """Which of its outputs this is."""
    data: str
    """The next part of the text."""


class ShellExitParams(WireModel):
    """The last notification about a process; ``exit_code`` is 1 if a signal ended the process."""

    process_id: str
    """The id of the process."""
    exit_code: int
    """Its exit code."""


METHODS: Final[Mapping[str, Method]] = {
    "session.shell.exec": Method(
        ShellExecParams,
        ShellExecResult,
        "Start a command. Its output and its end are notifications to this client.",
    ),
    "session.shell.kill": Method(ShellKillParams, ShellKillResult, "Send a command of the client a signal."),
    "session.shell.executeUserRequested": Method(
        UserCommandParams,
        UserCommandResult,
        "Run a command of a person, which the model learns with the next prompt.",
    ),
    "session.shell.cancelUserRequested": Method(
        CancelUserCommandParams, CancelUserCommandResult, "Stop a command that a person has started."
    ),
}
