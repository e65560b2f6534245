"""Write the page of session options: ``python -m jumpseat_protocol.options_page > docs/session-options.md``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from jumpseat_protocol.reference import anchor_of, described_type
from jumpseat_protocol.schema import JsonSchema, schema
from jumpseat_protocol.sessions import KeptOptions, SessionCreateParams, SessionOptions, StoredOptions
from jumpseat_protocol.wire import WireModel

INTRODUCTION: Final = """\
# Session options

The params of `session.create`; `session.resume` and `session.options.update` have most of them, too.
All are optional. `null` means the same as absent.
Official SDKs have them under the names of their languages, such as `working_directory` in Python.
This page is generated from the types of the protocol.

"""

CLASSES: Final[tuple[tuple[type[WireModel], str, str], ...]] = (
    (
        StoredOptions,
        "Stored with the session",
        "A client that resumes the session, in a later process too, need not repeat these.",
    ),
    (
        KeptOptions,
        "Kept while the session is open",
        "Credentials, and what the log holds anyway. Send `provider` and `providers` again on a resume.",
    ),
    (
        SessionOptions,
        "Of the client that opens it",
        "Where the session works, the client's own tools, what it answers, and its credentials.",
    ),
    (
        SessionCreateParams,
        "Of a new session only",
        "`session.resume` has a `sessionId` and `allowedModels`, too.",
    ),
)


def page() -> str:
    """Return the page: the options by how long they live, then the types that they use."""
    types: Mapping[str, JsonSchema] = schema()["$defs"]
    options: Mapping[str, JsonSchema] = types["SessionCreateParams"]["properties"]
    parts = [INTRODUCTION]
    before = [frozenset[str](), *(frozenset(model.model_fields) for model, _, _ in CLASSES)]
    for (model, title, text), (known, _) in zip(CLASSES, pairwise(before), strict=True):
        aliases = [field.alias or name for name, field in model.model_fields.items() if name not in known]
        parts.append(f"## {title}\n\n{text}\n\n" + _table({alias: options[alias] for alias in aliases}))
    parts.append("## Types\n\n")
    for name in _used(types):
        parts.append(f"### {name}\n\n" + _table(types[name].get("properties", {}), types[name].get("required", [])))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _used(types: Mapping[str, JsonSchema]) -> list[str]:
    """Return the names of the types that options have, in the order of their first use."""
    found = ["SessionCreateParams"]
    for name in found:
        for used in re.findall(r'"#/\$defs/(\w+)"', json.dumps(types[name])):
            if used not in found:
                found.append(used)
    return found[1:]


def _table(members: Mapping[str, JsonSchema], required: list[str] | None = None) -> str:
    return "| member | type | default | meaning |\n|---|---|---|---|\n" + "".join(_rows(members, required or []))


def _rows(members: Mapping[str, JsonSchema], required: list[str]) -> Iterator[str]:
    for name, member in members.items():
        value = member.get("default")
        default = "required" if name in required else "" if value is None else f"`{json.dumps(value)}`"
        kind = re.sub(r"\(types\.md#(\w+)\)", lambda match: f"(#{anchor_of(match[1])})", described_type(member))
        text = " ".join(member.get("description", "").split()).replace("|", "\\|")
        yield f"| `{name}` | {kind} | {default} | {text} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
