"""What a session needs from the rest of the server. Implemented in ``adapters``, ``store`` and ``tools``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.model import Model, ModelInfo, ToolOrigin, ToolSpec
from jumpseat.agent.settings import SessionSettings
from jumpseat_protocol.events import Event, ShellToolInfo
from jumpseat_protocol.sessions import ClientTool


class EventLog(Protocol):
    """Where persisted events go."""

    @property
    def path(self) -> Path:
        """The file that others may read."""
        ...

    def append(self, event: Event) -> None:
        """Write one event; when this returns, killing the process no longer loses it.

        Raises:
            StoreError: it could not be written.
        """
        ...

    def sync_soon(self) -> None:
        """Have what was written brought to the disk, off the path of the caller."""
        ...


AskToken: TypeAlias = Callable[[str], Awaitable[str]]
"""Gives the bearer token for the provider of that name; ``default`` is the one of ``provider``."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model ready to be called. ``wire_name`` is what its provider calls it.

    ``info`` is what was said of it, and governs requests. ``filled`` has in its gaps what else is known.
    ``find_auto`` gives the model by which the same provider chooses one itself, where it has that.
    """

    model: Model
    wire_name: str
    info: ModelInfo
    byok: bool = True
    filled: ModelInfo | None = None
    find_auto: Callable[[], Awaitable[str | None]] | None = None

    @property
    def known(self) -> ModelInfo:
        """All that is known of the model: to inform with, not to decide what it may be asked for."""
        return self.filled or self.info


class ModelSource(Protocol):
    """Finds the model a session wants."""

    def check(self, settings: SessionSettings) -> None:
        """Say at once what is wrong with the settings, without any I/O.

        Raises:
            JumpseatError: the provider or its settings cannot work.
        """
        ...

    async def resolve(self, settings: SessionSettings, *, ask_token: AskToken | None = None) -> ResolvedModel:
        """Find the model; may ask the provider for its list, once.

        ``ask_token`` is asked, before every request, for the bearer token of a provider whose client gives one.

        Raises:
            ProviderError: the provider refused.
            JumpseatError: nothing is configured, or wrongly.
        """
        ...

    def unfit_settings(self, settings: SessionSettings) -> list[str]:
        """The adapter settings that the session's model cannot be given, as far as that is known at once."""
        ...

    def refuses_tools(self, resolved: ResolvedModel) -> None:
        """Keep in mind that the provider of a model does not let it call tools."""
        ...


class ToolRunner(Protocol):
    """All tools of one session."""

    async def look(self, prompt: str) -> None:
        """Look for tools that are new, or mentioned in a prompt that is about to be said."""
        ...

    def in_words(self, prompt: str) -> str:
        """A prompt with the ``@{name}`` of tools and groups in words."""
        ...

    def instructions(self) -> str:
        """What the tools have for the system message."""
        ...

    def specs(self, needed: str | None = None) -> list[ToolSpec]:
        """The tools the model may see now, with one that is ``needed``."""
        ...

    def deferred(self) -> list[ToolSpec]:
        """Those that it may call and has yet to look for."""
        ...

    def names(self, settings: SessionSettings | None = None) -> list[str]:
        """The names of the tools that the model may see now, or would see with other ``settings``."""
        ...

    def check(self, tools: Mapping[str, ClientTool]) -> None:
        """Judge the tools a client brings.

        Raises:
            InvalidRequestError: one would hide a built-in tool without saying so.
        """
        ...

    async def ready(self) -> None:
        """Wait for tools that are just being started, but not for long; a turn that begins wants them."""
        ...

    def origin(self, name: str) -> ToolOrigin | None:
        """The MCP server that the tool of that name is of."""
        ...

    def intention(self, call: ToolUseBlock) -> str | None:
        """A few words for the user on what ``call`` is about to do."""
        ...

    def shell_info(self, call: ToolUseBlock) -> ShellToolInfo | None:
        """What a shell command touches, as far as its text tells."""
        ...

    async def run(self, calls: list[ToolUseBlock], turn_id: str) -> bool:
        """Run the calls of one answer; returns whether the turn ends here.

        **Contract:** emits exactly one ``tool.execution_complete`` per call, also when cancelled.
        """
        ...

    async def close(self, grace_s: float | None = None) -> None:
        """End what the tools have running; commands get ``grace_s`` to do so by themselves."""
        ...
