"""What the slash commands of ``chat`` have in common: the chat as they see it, and their description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Unpack

from jumpseat_client import Client, PromptOptions, Session
from jumpseat_terminal.feed import Feed
from jumpseat_terminal.modes import Modes
from jumpseat_terminal.options import Settings
from jumpseat_terminal.screen import Screen


class Chat(Protocol):
    """The parts of a chat that commands use. ``server_commands`` are ``{name, description?}``."""

    @property
    def settings(self) -> Settings: ...
    @property
    def client(self) -> Client: ...
    @property
    def session(self) -> Session: ...
    @property
    def screen(self) -> Screen: ...
    @property
    def feed(self) -> Feed: ...
    @property
    def folder(self) -> Path: ...
    @property
    def modes(self) -> Modes: ...
    @property
    def server_commands(self) -> list[dict[str, Any]]: ...
    async def change_session(self, session_id: str | None) -> None: ...
    async def send(self, prompt: str, **options: Unpack[PromptOptions]) -> None: ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the chat. ``run`` receives the text after the command's name.

    The output of a ``titled`` command follows the command itself.
    """

    description: str
    run: Callable[[Chat, str], Awaitable[None]]
    hint: str = ""
    titled: bool = True
