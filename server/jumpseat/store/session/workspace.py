"""``workspace.yaml`` of a session: what lists show, so that listing sessions reads no logs.

Other programs may read and write the file.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, Final, cast

import orjson
from msgspec import Struct

from jumpseat.agent.clock import iso_time
from jumpseat.agent.session.metrics import ModelUsage
from jumpseat.parsing.yaml_text import read_foreign_yaml
from jumpseat_protocol.events import WorkingDirectoryContext
from jumpseat_protocol.sessions import SessionMetadata

LARGEST_BYTES: Final = 1024 * 1024
"""A longer file is invalid."""

# Fields that clients do not get.
_INTERNAL: Final = ("summary", "created_by", "answered", "one_off", "usage", "usage_days")
# Characters that JSON allows in a string, but YAML readers reject or fold.
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


class Workspace(Struct):
    """The content of the file. Times are ISO 8601.

    ``user_named`` says whether the user or a program chose ``name``; ``summary`` is the first prompt, shortened.
    ``created_by`` is the name of the connection token that created the session. ``answered`` says whether the model
    has answered yet, ``one_off`` whether the session is for one prompt only. ``usage`` is that of each model,
    as JSON; ``usage_days`` is that of each day and model, see :mod:`~jumpseat.store.session.daily_usage`.
    """

    id: str
    cwd: str
    created_at: str
    updated_at: str
    git_root: str | None = None
    repository: str | None = None
    branch: str | None = None
    summary: str | None = None
    summary_count: int = 0
    name: str | None = None
    user_named: bool = False
    created_by: str | None = None
    answered: bool | None = None
    one_off: bool | None = None
    usage: str | None = None
    usage_days: str | None = None

    def listed(self, modified_time: str, *, unanswered: bool = False) -> dict[str, Any]:
        """Return the entry of lists, a :class:`SessionMetadata` on the wire.

        File systems tell the time of a change by a clock that is some milliseconds behind.
        """
        context = {
            "cwd": self.cwd,
            "gitRoot": self.git_root,
            "repository": self.repository,
            "branch": self.branch,
        }
        entry = {
            "sessionId": self.id,
            "startTime": self.created_at,
            "modifiedTime": max(modified_time, self.created_at),
            "summary": self.name or self.summary,
            "name": self.name,
            "isRemote": False,
            "context": {name: value for name, value in context.items() if value is not None},
            "oneOff": self.one_off,
            "unanswered": unanswered or None,
        }
        return {name: value for name, value in entry.items() if value is not None}

    def metadata(self, modified_time: str) -> SessionMetadata:
        """Return the metadata that lists show."""
        return SessionMetadata.model_validate(self.listed(modified_time))

    def wire(self) -> dict[str, Any]:
        """Return the fields in the form that clients get, without unset ones and without the prompt."""
        return {
            name: value
            for name in Workspace.__struct_fields__
            if name not in _INTERNAL and (value := getattr(self, name)) is not None
        }

    def encode(self) -> str:
        """Return the content of the file."""
        return "".join(
            f"{name}: {_yaml(value)}\n"
            for name in Workspace.__struct_fields__
            if (value := getattr(self, name)) is not None
        )

    def model_usage(self) -> dict[str, ModelUsage]:
        """Return the usage of each model; empty if nothing valid is stored."""
        try:
            stored = orjson.loads(self.usage or "{}")
            usage = {model: ModelUsage(**values) for model, values in stored.items()}
        except (ValueError, TypeError, AttributeError):
            return {}
        return usage if all(map(_is_valid, usage.values())) else {}


def _is_valid(usage: ModelUsage) -> bool:
    # From a file that other programs may write.
    values: dict[str, object] = {name: getattr(usage, name) for name in ModelUsage.__struct_fields__}
    return isinstance(values.pop("dollars"), float | int | None) and all(
        type(value) is int for value in values.values()
    )


def workspace_of(
    session_id: str,
    context: WorkingDirectoryContext,
    created_at: str,
    created_by: str | None = None,
    one_off: bool = False,
) -> Workspace:
    """Return the workspace of a new session in ``context``."""
    return Workspace(
        id=session_id,
        cwd=context.cwd,
        created_at=created_at,
        updated_at=created_at,
        git_root=context.git_root,
        repository=context.repository,
        branch=context.branch,
        created_by=created_by,
        one_off=one_off or None,
    )


def parse_workspace(session_id: str, content: bytes) -> Workspace | None:
    """Return the content of the file; ``None`` if it is invalid."""
    if len(content) > LARGEST_BYTES:
        return None
    values = _parse_own(content)
    if values is None:
        try:
            raw: Any = read_foreign_yaml(content.decode())
        except ValueError:
            return None
        if not isinstance(raw, dict):
            return None
        values = cast("dict[str, Any]", raw)
    times = {name: _iso(values.get(name)) for name in ("created_at", "updated_at")}
    texts = {
        name: values.get(name)
        for name in ("git_root", "repository", "branch", "summary", "name", "created_by", "usage", "usage_days")
    }
    return Workspace(
        id=session_id,
        cwd=_text(values.get("cwd")) or "",
        created_at=times["created_at"] or times["updated_at"] or iso_time(0),
        updated_at=times["updated_at"] or times["created_at"] or iso_time(0),
        summary_count=values["summary_count"] if isinstance(values.get("summary_count"), int) else 0,
        user_named=values.get("user_named") is True,
        answered=values.get("answered") is True or None,
        one_off=values.get("one_off") is True or None,
        **{name: _text(text) for name, text in texts.items()},
    )


def _parse_own(content: bytes) -> dict[str, Any] | None:
    """Parse a file that this server has written, each value as JSON; ``None`` for one of other programs.

    A parser of YAML takes a hundred times as long.
    """
    values: dict[str, Any] = {}
    try:
        for line in content.splitlines():
            name, _, value = line.partition(b": ")
            values[name.decode()] = orjson.loads(value)
    except ValueError:
        return None
    return values or None


def _yaml(value: str | int) -> str:
    """Encode a scalar as JSON that is valid YAML, too."""
    if not isinstance(value, str) or value.isprintable():
        return orjson.dumps(value).decode()
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", json.dumps(value, ensure_ascii=False))


def _text(value: Any) -> str | None:
    """Return a string that JSON can hold; ``None`` for other types. Other programs may have written the value."""
    if not isinstance(value, str):
        return None
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _iso(value: Any) -> str | None:
    # YAML parses unquoted times as dates, in UTC if they have no zone; other programs may have written the file.
    if isinstance(value, datetime):
        return iso_time((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    return _text(value)
