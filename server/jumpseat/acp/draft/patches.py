"""Convert unified diffs of the tools into those of version 2: the changed files, and a patch of git. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from jumpseat.acp.translation.diffs import Diffs, Hunk, Reader, hunks_of


def patches_of(
    unified: str, path: str | None = None, *, read: Reader | None = None, applied: bool = False
) -> Diffs:
    """Return one diff for all files of ``unified``; empty if it is not a diff.

    The arguments are those of :func:`jumpseat.acp.translation.diffs.diffs_of`; a patch needs no other text.
    """
    del read, applied
    files = [list(hunks) for _, hunks in groupby(hunks_of(unified, path), key=lambda hunk: hunk.name)]
    if not files:
        return Diffs([], [])
    patch = {"format": "git_patch", "text": "".join(_section(hunks) for hunks in files)}
    content = {"type": "diff", "changes": [_change(hunks[0]) for hunks in files], "patch": patch}
    lines = [{"path": hunk.name, "line": max(1, hunk.line)} for hunks in files for hunk in hunks]
    return Diffs([content], lines)


def _change(hunk: Hunk) -> dict[str, Any]:
    change: dict[str, Any] = {"path": hunk.name, "fileType": "text"}
    if hunk.created:
        return {"operation": "add", **change}
    if hunk.deleted:
        return {"operation": "delete", **change}
    if hunk.old_name != hunk.name:
        return {"operation": "move", "oldPath": hunk.old_name, **change}
    return {"operation": "modify", **change}


def _section(hunks: Sequence[Hunk]) -> str:
    """Return the part of a patch that is about one file."""
    return "".join(f"{line}\n" for line in (*_header(hunks[0]), *(line for hunk in hunks for line in hunk.text)))


def _header(hunk: Hunk) -> Iterator[str]:
    old, new = _quoted(hunk.name if hunk.created else hunk.old_name), _quoted(hunk.name)
    yield f"diff --git {old} {new}"
    if hunk.created:
        yield "new file mode 100644"
    elif hunk.deleted:
        yield "deleted file mode 100644"
    elif old != new:
        yield from (f"rename from {old}", f"rename to {new}")
    yield f"--- {'/dev/null' if hunk.created else old}"
    yield f"+++ {'/dev/null' if hunk.deleted else new}"


def _quoted(path: str) -> str:
    """Return a path as git writes it: in quotes if it has quotes, backslashes or control characters."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return path
    return '"' + "".join(map(_escaped, path)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else "".join(f"\\{byte:03o}" for byte in character.encode())
