"""The slash commands of ``chat``: its own, and those of the server, its clients and skills."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from jumpseat_client import Client, RpcError, Session
from jumpseat_protocol.sessions import SessionMetadata
from jumpseat_terminal.feed import Feed
from jumpseat_terminal.options import Settings
from jumpseat_terminal.paint import count
from jumpseat_terminal.safe import one_line
from jumpseat_terminal.screen import Option, Screen

_COMMAND: Final = re.compile(r"/([A-Za-z][\w-]*)(?:\s+(.*))?", re.DOTALL)


_FIRST_STEPS: Final = (
    ("export OPENAI_API_KEY=...", "or ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY and others"),
    ("gh auth login", "GitHub Copilot, with a subscription"),
    ("export OLLAMA_MODEL=...", "a local model, served by Ollama"),
    ("jumpseat adapters", "list the available adapters and what each needs"),
    ("jumpseat check NAME", "test an adapter and explain what is wrong"),
)


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
    def server_commands(self) -> list[dict[str, Any]]: ...
    async def change_session(self, session_id: str | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the chat. ``run`` receives the text after the command's name."""

    description: str
    run: Callable[[Chat, str], Awaitable[None]]
    hint: str = ""


def parse(text: str) -> tuple[str, str] | None:
    """Split a command into name and arguments; ``None`` for a prompt, which may start with a path."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1].lower(), (found[2] or "").strip()) if found else None


async def run(chat: Chat, name: str, args: str) -> None:
    """Run a command, and show its errors."""
    try:
        if name in COMMANDS:
            await COMMANDS[name].run(chat, args)
            return
        if name not in {command["name"].lower() for command in chat.server_commands}:
            chat.feed.note(f"Unknown command /{name}; /help lists the commands.", "yellow")
            return
        answer = await chat.session.request("session.commands.invoke", name=name, input=args)
        if answer.get("kind") == "agent-prompt":
            if chat.feed.busy:
                chat.feed.queued += 1
            await chat.session.send(str(answer["prompt"]))
        elif answer.get("text"):
            chat.feed.note(str(answer["text"]), "")
    except RpcError as error:
        chat.feed.show(chat.screen.painter().error(f"/{name}: {error}"))


async def pick_session(chat: Chat) -> str | None:
    """Let the user choose a session, and return its id."""
    found = [session for session in await chat.client.list_sessions() if session.summary or session.name]
    if not found:
        chat.feed.note("There are no sessions yet.")
        return None
    here = [session for session in found if session.context and session.context.cwd == str(chat.settings.folder)]
    others = [session for session in found if session not in here]
    options = [
        Option(_session_line(session, elsewhere=session in others), session.session_id)
        for session in [*here, *others]
    ]
    return await chat.screen.choose("Which session do you want to resume?", options, searchable=True)


def _session_line(session: SessionMetadata, *, elsewhere: bool) -> str:
    when = session.modified_time[:16].replace("T", " ")
    place = f"  {session.context.cwd}" if elsewhere and session.context else ""
    return f"{when}  {one_line(session.name or session.summary or session.session_id)}{place}"


async def _help(chat: Chat, _args: str) -> None:
    rows = [(f"/{name} {command.hint}".strip(), command.description) for name, command in COMMANDS.items()]
    rows += [
        (f"/{command['name']}", str(command.get("description") or ""))
        for command in chat.server_commands
        if command["name"].lower() not in COMMANDS
    ]
    keys = [
        ("enter, ctrl-j", "send; start a new line"),
        ("ctrl-c", "cancel the turn; when idle, press twice to quit"),
        ("ctrl-o", "show the last shortened item in full"),
        ("↑ ↓ tab", "previous prompts; complete a command or file name"),
        ("@file", "attach a file, image or folder"),
    ]
    painter = chat.screen.painter()
    chat.feed.show(painter.table(rows) + "\n" + painter.table(keys))


async def offer_models(chat: Chat) -> None:
    """Let the user choose a model for a session without one, or explain how to get access to one."""
    try:
        models = await _models(chat)
    except RpcError:
        painter = chat.screen.painter()
        chat.feed.show(
            painter.warning("No model is available yet. To get started, use one of these:")
            + painter.table(_FIRST_STEPS)
        )
        return
    if await _choose_model(chat, models):
        chat.feed.note("To use it by default, set default_model in config.toml.")


async def _model(chat: Chat, args: str) -> None:
    models = await _models(chat)
    if not args:
        await _choose_model(chat, models)
        return
    await chat.session.set_model(args)
    if models and args not in {model["id"] for model in models}:
        chat.feed.note("This model is not listed; the next prompt will show whether it works.", "yellow")


async def _models(chat: Chat) -> list[dict[str, Any]]:
    return (await chat.session.request("session.model.list"))["list"]


async def _choose_model(chat: Chat, models: list[dict[str, Any]]) -> bool:
    """Let the user choose a model; return whether one was chosen."""
    if not models:
        chat.feed.note(
            "Could not list any models; jumpseat check NAME shows why.\n/model NAME selects one by name.",
            "yellow",
        )
        return False
    options = [Option(_model_line(model, chat.feed.model), model["id"]) for model in models]
    chosen: str | None = await chat.screen.choose("Which model?", options, searchable=True)
    if chosen:
        await chat.session.set_model(chosen)
    return bool(chosen)


def _model_line(model: dict[str, Any], current: str | None) -> str:
    window = model.get("capabilities", {}).get("limits", {}).get("max_context_window_tokens")
    size = f"  {window // 1000}k" if isinstance(window, int) else ""
    return f"{one_line(model['id'])}{size}{'  (current)' if model['id'] == current else ''}"


async def _resume(chat: Chat, args: str) -> None:
    session_id: str | None
    if args:
        found = [
            session.session_id
            for session in await chat.client.list_sessions()
            if session.session_id.startswith(args)
        ]
        session_id = found[0] if len(found) == 1 else None
        if session_id is None:
            chat.feed.note(f"{count(len(found), 'session')} found with an id that starts with {args}.", "yellow")
    else:
        session_id = await pick_session(chat)
    if session_id is not None:
        await chat.change_session(session_id)


async def _new(chat: Chat, _args: str) -> None:
    await chat.change_session(None)


async def _clear(chat: Chat, _args: str) -> None:
    chat.screen.clear()
    await chat.change_session(None)


async def _usage(chat: Chat, _args: str) -> None:
    used = await chat.session.request("session.usage.getMetrics")
    changes = used["codeChanges"]
    rows: list[tuple[str, str]] = []
    for name, value in used["modelMetrics"].items():
        tokens = value["usage"]
        cached = f", {tokens['cacheReadTokens']:,} from cache" if tokens["cacheReadTokens"] else ""
        calls = count(value["requests"]["count"], "call")
        rows.append((name, f"{calls}, {tokens['inputTokens']:,} in{cached}, {tokens['outputTokens']:,} out"))
    if chat.feed.context_used is not None:
        rows.append(("context", f"{chat.feed.context_used:.0%} used"))
    rows.append(("changes", f"+{changes['linesAdded']} -{changes['linesRemoved']} lines"))
    chat.feed.show(chat.screen.painter().table(rows))


async def _tools(chat: Chat, _args: str) -> None:
    await chat.session.request("session.tools.initializeAndValidate")
    tools = (await chat.session.request("session.tools.getCurrentMetadata"))["tools"]
    rows = [(str(tool["name"]), str(tool.get("description") or "").split(". ")[0].split("\n")[0]) for tool in tools]
    chat.feed.show(chat.screen.painter().table(rows))


async def _thinking(chat: Chat, args: str) -> None:
    chat.feed.show_thinking = args == "on" if args in ("on", "off") else not chat.feed.show_thinking
    chat.feed.note(f"The model's reasoning is shown {'in full' if chat.feed.show_thinking else 'as one line'}.")


async def _compact(chat: Chat, args: str) -> None:
    # The result arrives as an event, which the feed shows.
    options = {"customInstructions": args} if args else {}
    await chat.session.request("session.history.compact", **options)


async def _quit(chat: Chat, _args: str) -> None:
    chat.screen.leave()


COMMANDS: Final = {
    "help": Command("list the commands and keys", _help),
    "model": Command("choose a model, or select NAME", _model, "[NAME]"),
    "resume": Command("resume another session", _resume, "[ID]"),
    "new": Command("start a new session", _new),
    "clear": Command("clear the screen and start a new session", _clear),
    "compact": Command("summarize the conversation, to free up context", _compact, "[WHAT TO KEEP]"),
    "usage": Command("show the calls and tokens used by this session", _usage),
    "tools": Command("list the tools of the model", _tools),
    "thinking": Command("show reasoning in full, or as one line", _thinking, "[on|off]"),
    "quit": Command("quit; the session is kept", _quit),
}
