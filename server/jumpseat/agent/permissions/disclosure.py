"""Complete a permission request for the person who decides, with the targets of paths and with warnings.

Descriptions of a call are written by the model or by an MCP server. They are reduced to one visible line, so that
they cannot imitate other parts of the question. The command, path, URL and arguments of a call remain unchanged,
because clients compare them and because they take effect unchanged; a warning names characters that hide something.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from jumpseat.agent.permissions.rules import Facts, likenesses_here, shows_only
from jumpseat.agent.shell.likeness import SAME, descriptions
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    PermissionRequest,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)
from jumpseat_protocol.visible import (
    deceptive_characters,
    deceptive_in_text,
    exact_line,
    has_hidden_parts,
    on_one_line,
    visible_url,
)

MAX_SHOWN_PATHS: Final = 5
MAX_SHOWN_PROGRAMS: Final = 8

OBEYED_BY_GIT: Final = (
    "Git may change files that other programs obey: an editor, an agent or a shell may run what they name"
)
UNKNOWN_TO_GIT: Final = "Git may also change files that other programs obey: which ones is not known before it runs"

RUN_BY_GIT: Final = "In this folder, which you do not trust, git may run programs that the repository names"

OBEYED: Final = (
    "Programs obey this file: an editor, an agent, git or a shell may run what it names, outside of the sandbox"
)


def disclose(request: PermissionRequest, facts: Facts) -> None:
    """Add real targets and warnings to ``request``, and reduce its descriptions to one line."""
    match request:
        case ReadPermission(path=named):
            request.resolved_path = _real_path(named, facts)
            request.intention = exact_line(request.intention)
            request.warning = _joined(_names(named), _target(request.resolved_path))
        case WritePermission():
            for file in request.files:
                file.resolved_path = _real_path(file.path, facts)
            request.resolved_path = _real_path(request.file_name, facts)
            request.intention = exact_line(request.intention)
            _warn_of_change(request, facts)
        case ShellPermission():
            if request.intention != request.full_command_text:
                request.intention = on_one_line(request.intention)
            warnings = [request.warning] if request.warning else []
            request.warning = on_one_line(". ".join([*warnings, *_warnings(request, facts)])) or None
            request.also_covered = exact_line(", ".join(_also_covered(request, facts))) or None
        case UrlPermission():
            shown = visible_url(request.url)
            request.intention = on_one_line(request.intention) if shown == request.url else f"Open {shown}"
            before = visible_url(request.redirected_from or "")
            request.warning = _joined(
                None if shown == request.url else f"The address is {shown}",
                f"The address before was {before}" if before != (request.redirected_from or "") else None,
            )
        case McpPermission():
            request.tool_title = on_one_line(request.tool_title)
            request.warning = _joined(_names(request.server_name, request.tool_name), _arguments(request.args))
        case CustomToolPermission():
            request.warning = _joined(_names(request.tool_name), _arguments(request.args))
        case HookPermission():
            request.warning = _joined(_names(request.tool_name), _arguments(request.tool_args))
        case MemoryPermission():
            texts = (request.fact, request.subject, request.citations, request.reason, request.repo_nwo)
            found = deceptive_in_text("\n".join(filter(None, texts)))
            request.warning = _characters("The memory contains", found)


def _real_path(named: str, facts: Facts) -> str | None:
    """Return the path that a path of a call leads to, if that is another one."""
    if len(facts.paths) == 1:
        return facts.paths[0].real if facts.paths[0].real != named else None
    given = posixpath.normpath(named)
    return next((path.real for path in facts.paths if path.given == given and path.real != named), None)


def _warn_of_change(request: WritePermission, facts: Facts) -> None:
    added = request.diff
    if not added.startswith("--- /dev/null") or "\n--- " in added:
        added = "\n".join(line for line in added.split("\n") if line.startswith("+"))
    names = [file.path for file in request.files] or [request.file_name]
    leading = [f"{file.path} leads to {file.resolved_path}" for file in request.files if file.resolved_path]
    request.warning = _joined(
        exact_line(", ".join(leading)) if len(names) > 1 else None,
        _names(*names),
        _target(request.resolved_path),
        _characters("The change contains", deceptive_in_text(added)),
        "Long white space may push a part of the change out of sight" if has_hidden_parts(added) else None,
        OBEYED if facts.protected else None,
    )
    if facts.protected:
        # No approval of one such change covers the next one.
        request.can_offer_session_approval = False


def _joined(*warnings: str | None) -> str | None:
    return ". ".join(filter(None, warnings)) or None


def _names(*names: str) -> str | None:
    where = "A name contains" if len(names) > 1 else "The name contains"
    return _characters(where, deceptive_characters("\n".join(names)))


def _target(path: str | None) -> str | None:
    return _characters("The name of the target contains", deceptive_characters(path)) if path else None


def _arguments(args: Any) -> str | None:
    return _characters("The arguments contain", deceptive_in_text(_texts(args)))


def _characters(where: str, found: Sequence[str]) -> str | None:
    return f"{where} characters that are invisible or imitate others: {', '.join(found)}" if found else None


def _texts(value: Any) -> str:
    """Return all strings in the arguments of a call."""
    parts: list[str] = []
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            parts.append(one)
        elif isinstance(one, dict):
            table = cast("dict[str, Any]", one)
            waiting += [*table.keys(), *table.values()]
        elif isinstance(one, list):
            waiting += cast("list[Any]", one)
    return "\n".join(parts)


def _also_covered(request: ShellPermission, facts: Facts) -> Iterable[str]:
    """Return the commands that an approval of a confined command covers because they are like it."""
    shows = request.sandboxed is False and shows_only(facts.segments)
    if not (request.sandboxed or shows) or not request.can_offer_session_approval:
        return ()
    return descriptions(
        text
        for segment in facts.segments
        if any(likenesses_here(segment, segment.likeness.gives))
        for text in segment.likeness.gives
        if not text.startswith(SAME)
    )


def _warnings(request: ShellPermission, facts: Facts) -> list[str]:
    text = request.full_command_text
    warnings: list[str] = []
    if facts.git_files:
        warnings.append(f"{OBEYED_BY_GIT}: {_some(facts.git_files)}")
    if facts.git_writes_unknown:
        warnings.append(UNKNOWN_TO_GIT)
    if facts.git_programs:
        shown = ", ".join(facts.git_programs[:MAX_SHOWN_PROGRAMS])
        more = len(facts.git_programs) - MAX_SHOWN_PROGRAMS
        warnings.append(f"{RUN_BY_GIT}: {shown}{f' and {more} more' if more > 0 else ''}")
    hidden = list(dict.fromkeys(path.real for path in facts.outside_paths if path.real not in text))
    if hidden:
        warnings.append(f"May reach outside of the session's folders: {_some(hidden)}")
    if (characters := _characters("Contains", deceptive_characters(text))) is not None:
        warnings.append(characters)
    if has_hidden_parts(text):
        warnings.append("Long white space may push a part of the command out of sight")
    return warnings


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:MAX_SHOWN_PATHS]) + (", …" if len(paths) > MAX_SHOWN_PATHS else "")
