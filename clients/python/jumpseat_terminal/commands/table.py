"""The table of slash commands: those of the chat, of the server, its clients and skills."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from jumpseat_client import PromptOptions, RpcError
from jumpseat_protocol.members import nearest
from jumpseat_terminal.commands import approvals, changes, extensions, models, plugins, rewind, sessions, usage
from jumpseat_terminal.commands.base import Chat, Command

_COMMAND: Final = re.compile(r"/([A-Za-z][\w-]*)(?:\s+(.*))?", re.DOTALL)


def parse(text: str) -> tuple[str, str] | None:
    """Split a command into name and arguments; ``None`` for a prompt, which may start with a path."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1].lower(), (found[2] or "").strip()) if found else None


async def run(chat: Chat, name: str, args: str) -> None:
    """Run a command under a heading, and show its errors."""
    known = {str(command["name"]).lower() for command in chat.server_commands}
    if name not in COMMANDS and name not in known:
        meant = nearest(name, {*COMMANDS, *known})
        hint = f"did you mean /{meant}?" if meant is not None else "/help lists the commands."
        chat.feed.note(f"Unknown command /{name}; {hint}", "yellow")
        return
    if name not in COMMANDS or COMMANDS[name].titled:
        chat.feed.heading(f"/{name} {args}".rstrip())
    try:
        if name in COMMANDS:
            await COMMANDS[name].run(chat, args)
            return
        answer = await chat.session.request("session.commands.invoke", name=name, input=args)
        if answer.get("kind") == "agent-prompt":
            await chat.send(str(answer["prompt"]), **_options(answer))
        elif answer.get("kind") == "select-subcommand":
            chat.feed.note(f"{answer['title']}:", "")
            rows = [(f"/{name} {option['name']}", str(option["description"])) for option in answer["options"]]
            chat.feed.show(chat.screen.painter().table(rows))
        elif shown := answer.get("text") or answer.get("message"):
            chat.feed.note(str(shown), "")
    except RpcError as error:
        chat.feed.show(chat.screen.painter().error(f"/{name}: {error}"))


def _options(answer: dict[str, Any]) -> PromptOptions:
    """Return the options of a prompt that is the result of a command."""
    options = PromptOptions(display_prompt=str(answer.get("displayPrompt") or answer["prompt"]))
    if "mode" in answer:
        options["agent_mode"] = answer["mode"]
    return options


def described(server_commands: list[dict[str, Any]]) -> dict[str, str]:
    """Return the descriptions of all commands by their names, without those that others stand for."""
    found = {name: command.description for name, command in COMMANDS.items() if name not in _DOUBLES}
    for command in server_commands:
        if (name := str(command["name"]).lower()) not in _DOUBLES:
            found.setdefault(name, _begin_small(str(command.get("description") or "a command of the server")))
    return found


def _begin_small(text: str) -> str:
    """Begin a description as those of the chat do; names such as MCP stay."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _hint(command: dict[str, Any]) -> str:
    """Return the arguments of a command of the server."""
    taken: dict[str, Any] = command.get("input") or {}
    return f"[{taken['hint']}]" if taken.get("hint") else ""


async def show_help(chat: Chat, _args: str) -> None:
    painter, about = chat.screen.painter(), described(chat.server_commands)
    hints = {str(each["name"]).lower(): _hint(each) for each in chat.server_commands}
    hints.update((name, command.hint) for name, command in COMMANDS.items())
    known = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "more": tuple(name for name in about if name not in known)}
    width = min(max(len(f"/{name} {hints.get(name, '')}") for name in about), painter.width // 3)
    for title, names in groups.items():
        rows = [
            (f"/{name} {hints.get(name, '')}".strip().ljust(width), about[name]) for name in names if name in about
        ]
        if rows:
            chat.feed.show(painter.notice(title, "bold") + painter.table(rows))
    chat.feed.show(
        painter.notice("keys", "bold") + painter.table([(key.ljust(width), text) for key, text in _KEYS])
    )


GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "work": ("plan", "review", "init", "fleet", "autopilot", "every", "after", "compact"),
    "changes": ("diff", "undo", "rewind"),
    "sessions": ("sessions", "new", "clear", "rename", "export", "quit"),
    "model": ("model", "connect", "thinking", "agents", "context", "usage", "cost"),
    "permissions": (
        "accept-edits",
        "permissions",
        "allow-all",
        "reset-allowed-tools",
        "add-dir",
        "list-dirs",
        "cwd",
    ),
    "tools": ("tools", "mcp", "skills", "hooks", "plugins", "env"),
}
"""The commands of ``/help`` by subject, those of the server too. All others are listed at the end."""

_DOUBLES: Final = frozenset({"resume", "plugin", "session"})
"""Commands that are not listed, because another one does the same or more; they can be run."""

_KEYS: Final = [
    ("enter, ctrl-j", "send; start a new line"),
    ("shift-tab", "ask about changes, accept them, or plan first"),
    ("ctrl-c", "cancel the turn, and take back queued prompts; when idle, press twice to quit"),
    ("ctrl-o", "show the last shortened item in full"),
    ("↑ ↓ tab", "previous prompts; complete a command or file name"),
    ("@file", "attach a file, image or folder"),
    ("!command", "run a command yourself; the model sees it with your next prompt"),
]

COMMANDS: Final = {
    "help": Command("list the commands and keys", show_help),
    "model": Command("choose a model, or select NAME", models.model, "[NAME]"),
    "connect": Command("connect a provider of models: enter a key, try it", models.connect),
    "plan": Command("plan before changing anything, or stop planning", approvals.plan, "[PROMPT]"),
    "accept-edits": Command("make changes to files without asking", approvals.accept_edits, "[on|off]"),
    "permissions": Command("list and revoke what is allowed without asking", approvals.permissions),
    "diff": Command("show the changes of the last prompts to files", changes.diff, "[PROMPTS]"),
    "undo": Command("take back the changes of the last prompt", changes.undo),
    "rewind": Command("go back to an earlier prompt", rewind.rewind),
    "sessions": Command("search the sessions, and resume one", sessions.resume, "[ID|WORDS]"),
    "resume": Command("the same", sessions.resume, "[ID|WORDS]"),
    "export": Command("write this session to a file: .md, .html or .jsonl", sessions.export, "[FILE]"),
    "new": Command("start a new session", sessions.new, titled=False),
    "clear": Command("clear the screen and start a new session", sessions.clear, titled=False),
    "compact": Command("summarize the conversation, to free up context", usage.compact, "[WHAT TO KEEP]"),
    "context": Command("show what fills the context window", usage.context),
    "usage": Command("show the calls and tokens used by this session", usage.usage),
    "cost": Command("show what this session has cost", usage.cost),
    "tools": Command("list the tools of the model", extensions.tools),
    "mcp": Command("list the MCP servers; restart, enable or disable one", extensions.mcp, "[ACTION NAME]"),
    "agents": Command("choose a custom agent, or none", extensions.agents, "[NAME|none]"),
    "skills": Command("list the skills", extensions.skills),
    "hooks": Command("list the hooks in files", plugins.hooks),
    "plugins": Command("list the plugins; install, trust, update or remove one", plugins.plugins, "[ACTION NAME]"),
    "thinking": Command("show reasoning in full, or as one line", models.thinking, "[on|off]"),
    "quit": Command("quit; the session is kept", sessions.leave, titled=False),
}
