"""The command ``/model``, and the choice of a model for a session without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jumpseat_client import RpcError
from jumpseat_protocol.safe import one_line
from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.connecting import connect_model
from jumpseat_terminal.dialogue import Option

_FIRST_STEPS: Final = (
    ("/connect", "choose a provider, enter a key, or try jumpseat without a model"),
    ("export OPENAI_API_KEY=...", "or ANTHROPIC_API_KEY, GEMINI_API_KEY and others, before the next start"),
    ("gh auth login", "GitHub Copilot, with a subscription"),
    ("export OLLAMA_MODEL=...", "a local model, served by Ollama"),
    ("jumpseat doctor", "shows what is set up, and what is wrong"),
)


async def offer_models(chat: Chat) -> None:
    """Let the user choose a model for a session without one, or explain how to get access to one."""
    try:
        models = await list_models(chat)
    except RpcError:
        painter = chat.screen.painter()
        chat.feed.show(
            painter.warning("No model is available yet. To get started, use one of these:")
            + painter.table(_FIRST_STEPS)
        )
        return
    if await _choose_model(chat, models):
        chat.feed.note("/connect makes a model the default one.")


async def model(chat: Chat, args: str) -> None:
    models = await list_models(chat)
    if not args:
        await _choose_model(chat, models)
        return
    await chat.session.set_model(args)
    if models and args not in {model["id"] for model in models}:
        chat.feed.note("This model is not listed; the next prompt will show whether it works.", "yellow")


async def connect(chat: Chat, _args: str) -> None:
    """Connect a provider, and use its model in this session."""
    connected = await connect_model(ChatDialogue(chat), chat.client)
    if connected is None:
        return
    await chat.session.set_model(connected.model)
    if not connected.kept:
        chat.feed.note("A script answers in this session. Ask it what it can do.")


class ChatDialogue:
    """The questions of :func:`jumpseat_terminal.connecting.connect_model` in a chat."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def pick(self, title: str, options: Sequence[Option]) -> Any:
        return await self._chat.screen.asking.pick(title, options)

    async def read_line(self, title: str, text: str = "", *, secret: bool = False) -> str | None:
        return await self._chat.screen.asking.read_line(title, text, secret=secret)

    def note(self, text: str, style: str = "dim") -> None:
        self._chat.feed.note(text, style)


async def thinking(chat: Chat, args: str) -> None:
    chat.feed.show_thinking = args == "on" if args in ("on", "off") else not chat.feed.show_thinking
    chat.feed.note(f"The model's reasoning is shown {'in full' if chat.feed.show_thinking else 'as one line'}.")


async def list_models(chat: Chat) -> list[dict[str, Any]]:
    """Return the models that the session can switch to, as ``session.model.list`` does."""
    return (await chat.session.request("session.model.list"))["list"]


async def _choose_model(chat: Chat, models: list[dict[str, Any]]) -> bool:
    """Let the user choose a model; return whether one was chosen."""
    if not models:
        chat.feed.note(
            "Could not list any models; jumpseat check NAME shows why.\n/model NAME selects one by name.",
            "yellow",
        )
        return False
    current = _current_id([model["id"] for model in models], chat.feed.model)
    options = [Option(one_line(model["id"]), model["id"], aside=_about(model, current)) for model in models]
    chosen: str | None = await chat.screen.asking.pick("Which model?", options)
    if chosen:
        await chat.session.set_model(chosen)
    return bool(chosen)


def _current_id(ids: list[str], name: str | None) -> str | None:
    """Return the listed id of the model ``name``, which may lack the adapter; ``None`` if that is ambiguous."""
    if name in ids:
        return name
    found = [listed for listed in ids if listed.partition("/")[2] == name]
    return found[0] if len(found) == 1 else None


def _about(model: dict[str, Any], current: str | None) -> str:
    window = model.get("capabilities", {}).get("limits", {}).get("max_context_window_tokens")
    size = f"{window // 1000}k" if isinstance(window, int) else ""
    return f"{size}{' (current)' if model['id'] == current else ''}".strip()
