"""Remind a model of the project's own check, at the end of a prompt that changed files without any check.

A check is a command that runs something: more than looking at files, moving them or installing packages. Prose
needs none, and neither do files outside of the working directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from jumpseat.agent.observation import ToolCall
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session, Work

SOURCE: Final = "check_reminder"
LONGEST_COMMAND: Final = 8192
"""The characters of a command that are looked at."""

_SEPARATORS: Final = re.compile(r"[\n;|&()]+")
_WRAPPERS: Final = re.compile(r"sudo|time|timeout|nice|env|exec|command|nohup|xargs")
_NO_CHECKS: Final = re.compile(
    r"ls|cat|head|tail|[ef]?grep|rg|ag|find|fd|git|gh|echo|printf|cd|pwd|pushd|popd|sed|awk|cut|sort|uniq|wc|tr|tee"
    r"|diff|cmp|tree|stat|file|du|df|mkdir|rmdir|touch|cp|mv|rm|ln|chmod|chown|which|type|whereis|true|false|export"
    r"|unset|set|source|\.|read|sleep|wait|kill|ps|date|id|whoami|uname|hostname|curl|wget|tar|zip|unzip|gzip|less"
    r"|more|xxd|od|jq|yq|for|while|if|then|else|elif|fi|do|done|case|esac|in|apt|apt-get|brew|exit|[\[{}!]"
)
_INSTALLS: Final = re.compile(
    r"install|i|ci|add|get|init|sync|update|upgrade|remove|uninstall|lock|tidy|fetch|download|list|show|-V|-v"
    r"|--version|--help"
)
_PROSE: Final = frozenset({".md", ".markdown", ".rst", ".adoc", ".org"})
_NAMED_LIKE_CHECKS: Final = re.compile(r"test|check|lint|build|compile|verify|diagnos", re.IGNORECASE)


def is_check(command: str) -> bool:
    """Return whether a shell command runs something that may show whether a change works."""
    for part in _SEPARATORS.split(command[:LONGEST_COMMAND]):
        words = [word for word in part.split() if "=" not in word and not word.isdigit()]
        first = next((at for at, word in enumerate(words) if not _WRAPPERS.fullmatch(word)), len(words))
        if first == len(words) or _NO_CHECKS.fullmatch(words[first].rpartition("/")[2]):
            continue
        if not any(map(_INSTALLS.fullmatch, words[first + 1 : first + 4])):
            return True
    return False


def note_changes(session: Session, paths: Iterable[Path]) -> None:
    """Note the files that a session or one of its sub-agents has changed."""
    root = session.root
    if any(path.suffix.lower() not in _PROSE and path.is_relative_to(root.settings.cwd) for path in paths):
        root.work = root.work or Work()


def note_call(session: Session, call: ToolCall, *, files_are_noted: bool) -> None:
    """Note a tool call of a session or of one of its sub-agents, with its files unless they are noted already."""
    root = session.root
    command = (call.arguments or {}).get("command")
    checks = (
        isinstance(command, str) and is_check(command)
        if call.kind == "shell"
        else _NAMED_LIKE_CHECKS.search(call.tool) is not None
    )
    if call.decision in ("denied", "rejected"):
        root.refuses_checks = root.refuses_checks or (checks and call.kind == "shell")
    elif call.kind == "write":
        if call.status == "success" and not files_are_noted:
            root.work = root.work or Work()
    elif checks and root.work is not None:
        root.work.checked = True


async def reminder(session: Session, prompt: Prompt) -> str | None:
    """Return the text that reminds the model of the project's check; ``None`` if there is no reason for it."""
    work = session.work
    if work is None or work.checked or work.reminded or session.refuses_checks or session.reads_only:
        return None
    if not session.reminds_of_checks or "bash" not in session.tools.names():
        return None
    if (prompt.response_format or session.settings.options.response_format) is not None:
        return None
    check = (await session.project.read(session.settings)).check
    if check is None:
        return None
    work.reminded = True
    return (
        f"You have changed files, and run no check since. Run `{check}` now, or the part of it that concerns your"
        " change, and correct what it shows. If it cannot run here, say so."
    )
