"""The table of slash commands: those of the chat, of the server, its clients and skills."""

from __future__ import annotations

import re
from typing import Any, Final

from jumpseat_client import PromptOptions, RpcError
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
        chat.feed.note(f"Unknown command /{name}; /help lists the commands.", "yellow")
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
    """Return the descriptions of all commands by their names, those of the chat first."""
    found = {name: command.description for name, command in COMMANDS.items()}
    for command in server_commands:
        found.setdefault(str(command["name"]).lower(), str(command.get("description") or "a command of the server"))
    return found


async def show_help(chat: Chat, _args: str) -> None:
    hints = {name: command.hint for name, command in COMMANDS.items()}
    rows = [
        (f"/{name} {hints.get(name, '')}".strip(), about) for name, about in described(chat.server_commands).items()
    ]
    painter = chat.screen.painter()
    chat.feed.show(painter.table(rows) + "\n" + painter.table(_KEYS))


_KEYS: Final = [
    ("enter, ctrl-j", "send; start a new line"),
    ("shift-tab", "ask about changes, accept them, or plan first"),
    ("ctrl-c", "cancel the turn; when idle, press twice to quit"),
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
