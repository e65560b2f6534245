"""Report to the model what the sandbox did to one command: files that it moved away, and refusals."""

from __future__ import annotations

from jumpseat.sandbox.session import Confined, SessionSandbox
from jumpseat.tools.shell.process import Shell

MAX_OUTPUT_BYTES = 65536
"""Length of the end of the output that is searched for refusals."""


class SandboxReport:
    """The report about a command that ``sandbox`` has confined."""

    def __init__(self, sandbox: SessionSandbox, confined: Confined) -> None:
        self._sandbox = sandbox
        self._confined = confined
        self._moved: list[str] = []

    @property
    def confined(self) -> bool:
        """Return whether the command is confined; without a mechanism that works, it is not."""
        return self._confined.mechanism is not None

    async def settle(self, *, ended: bool = True) -> None:
        """Examine the session's folders; called when the command has ended, and again for its last process."""
        self._moved += await self._sandbox.settle(self._confined, ended=ended)

    def end(self) -> None:
        """Note that no process of the command is left since the folders were examined."""
        self._sandbox.abandon(self._confined)

    def messages(self, shell: Shell) -> list[str]:
        """Return the lines of the report."""
        # The output of a command that succeeded shows nothing for certain.
        output = shell.output(MAX_OUTPUT_BYTES) if shell.exit_code else ""
        refused = self._sandbox.refusals(self._confined, output)
        return [*self._moved, *(f"the sandbox refused {what}" for what in refused)]
