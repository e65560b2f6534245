"""The results of slash commands: a text, a prompt to send, a choice to offer, or nothing to show."""

from __future__ import annotations

from typing import TypeAlias

from jumpseat.agent.session.queue_items import Prompt
from jumpseat_protocol import events
from jumpseat_protocol.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """A text to show, which may be Markdown."""

    text: str
    markdown: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """A change that was made; ``message`` says which one, if that is worth saying."""

    message: str | None = None


@dataclass(frozen=True, slots=True)
class AgentPrompt:
    """A command that is carried out by sending ``text`` as a prompt, in the agent mode ``mode``."""

    text: str
    mode: events.SessionMode | None = None
    shown: str | None = None
    """The text that users see in place of ``text``."""

    def as_prompt(self) -> Prompt:
        return Prompt(self.text, agent_mode=self.mode, display_text=self.shown)


@dataclass(frozen=True, slots=True)
class Option:
    """A word that a command takes."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Choice:
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
