"""The results of slash commands: a text, a prompt to send, a choice to offer, or nothing to show."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from jumpseat.agent.session.queue_items import Prompt
from jumpseat_protocol import events


class Text(Struct, frozen=True):
    """A text to show, which may be Markdown."""

    text: str
    markdown: bool = False


class Done(Struct, frozen=True):
    """A change that was made; ``message`` says which one, if that is worth saying."""

    message: str | None = None


class AgentPrompt(Struct, frozen=True):
    """A command that is carried out by sending ``text`` as a prompt, in the agent mode ``mode``."""

    text: str
    mode: events.SessionMode | None = None
    shown: str | None = None
    """The text that users see in place of ``text``."""

    def as_prompt(self) -> Prompt:
        return Prompt(self.text, agent_mode=self.mode, display_text=self.shown)


class Option(Struct, frozen=True):
    """A word that a command takes."""

    name: str
    description: str


class Choice(Struct, frozen=True):
    """A choice among the words that ``command`` takes, for a client to offer."""

    command: str
    title: str
    options: tuple[Option, ...]


CommandResult: TypeAlias = Text | Done | AgentPrompt | Choice


def shown_text(result: Text | Done | Choice) -> str | None:
    """Return a result as text, for clients that do not know its kind; ``None`` if there is nothing to show."""
    match result:
        case Text(text=text):
            return text
        case Done(message=message):
            return message
        case Choice():
            lines = [f"/{result.command} {option.name}  {option.description}" for option in result.options]
            return "\n".join([f"{result.title}:", *lines])
