"""The reference of the protocol as Markdown pages, made from its schema. ``make docs`` puts them on the site."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from jumpseat_protocol.methods import namespace_of
from jumpseat_protocol.schema import JsonSchema, schema

INTRODUCTION: Final = """\
# Protocol reference

Every request, notification, event and type, as `jumpseat schema` has them.

- [Requests of clients](#requests-of-clients), by the first part of their names.
- [Requests of the server](server-requests.md), which clients answer.
- [Notifications](notifications.md) and [events](events.md), which clients receive.
- [Types](types.md) that these use.

Messages are JSON-RPC 2.0 in `Content-Length` frames: [Writing a client](../clients.md) begins with a complete one.
In what a client sends, `null` means the same as absent.

## Requests of clients

| names | requests |
|---|---|
"""


def pages() -> dict[str, str]:
    """Return the pages by their names."""
    document = schema()
    sections: Mapping[str, JsonSchema] = document["properties"]
    types: Mapping[str, JsonSchema] = document["$defs"]
    groups: dict[str, list[str]] = defaultdict(list)
    requests = sections["clientRequests"]["properties"]
    for name in requests:
        groups[namespace_of(name)].append(name)
    server = sections["serverRequests"]["properties"]
    notifications = sections["notifications"]["properties"]
    events = sections["events"]["properties"]
    return {
        "index.md": INTRODUCTION + "".join(_row(group, names) for group, names in sorted(groups.items())),
        **{
            f"{_file(group)}.md": _page(f"`{group or 'connection'}`", _requests(requests, names, types))
            for group, names in groups.items()
        },
        "server-requests.md": _page("Requests of the server", _requests(server, server, types)),
        "notifications.md": _page("Notifications", _each(notifications, types)),
        "events.md": _page("Events", _each(events, types)),
        "types.md": _page("Types", (part for name in types for part in _entry(name, types[name]))),
    }


def _file(group: str) -> str:
    return (group or "connection").replace(".", "-")


def _row(group: str, names: Iterable[str]) -> str:
    links = ", ".join(f"[{name}]({_file(group)}.md#{anchor_of(name)})" for name in names)
    return f"| [`{group or 'connection'}`]({_file(group)}.md) | {links} |\n"


def _page(title: str, parts: Iterable[str]) -> str:
    return "\n".join([f"# {title}\n", *parts])


def anchor_of(name: str) -> str:
    """Return the anchor of a heading that is one name."""
    return name.lower().replace(".", "")


def _requests(
    section: Mapping[str, JsonSchema], names: Iterable[str], types: Mapping[str, JsonSchema]
) -> Iterator[str]:
    for name in names:
        request = section[name]
        yield f"## {name}\n\n{request['description']}\n"
        for part in ("params", "result"):
            made = _resolved(request["properties"][part], types)
            members = list(_members(made))
            if members:
                yield f"**{part}**\n\n" + "\n".join(members) + "\n"
            elif part == "result":
                yield f"**result**: {described_type(request['properties'][part])}\n"


def _each(section: Mapping[str, JsonSchema], types: Mapping[str, JsonSchema]) -> Iterator[str]:
    for name, made in section.items():
        resolved = _resolved(made, types)
        data = resolved.get("properties", {}).get("data")
        yield from _entry(name, resolved if data is None else {**_resolved(data, types), **_text_of(resolved)})


def _text_of(made: JsonSchema) -> JsonSchema:
    return {"description": made["description"]} if "description" in made else {}


def _entry(name: str, made: JsonSchema) -> Iterator[str]:
    """Yield the heading of a type, its description and its members."""
    yield f"## {name}\n"
    if text := made.get("description"):
        yield f"{text}\n"
    members = list(_members(made))
    if members:
        yield "\n".join(members) + "\n"
    elif made.get("type") != "object":
        yield f"{described_type({key: value for key, value in made.items() if key != 'description'})}\n"


def _members(made: JsonSchema) -> Iterator[str]:
    """Yield the lines of a table of members; none if there are no members."""
    required = made.get("required", [])
    for number, (name, member) in enumerate(made.get("properties", {}).items()):
        if number == 0:
            yield "| member | type | meaning |\n|---|---|---|"
        mark = "" if name in required else "?"
        text = " ".join(member.get("description", "").split()).replace("|", "\\|")
        yield f"| `{name}`{mark} | {described_type(member)} | {text} |"


def _resolved(made: JsonSchema, types: Mapping[str, JsonSchema]) -> JsonSchema:
    """Return the definition that a schema refers to, or the schema itself."""
    inner: JsonSchema = made.get("allOf", [made])[0]
    return types[inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner


def described_type(made: JsonSchema) -> str:
    """Return a type in words, with links to the types that have names."""
    if "allOf" in made:
        return described_type(made["allOf"][0])
    if "$ref" in made:
        name = made["$ref"].rpartition("/")[2]
        return f"[{name}](types.md#{name.lower()})"
    if "anyOf" in made:
        kinds = dict.fromkeys(described_type(kind) for kind in made["anyOf"] if kind != {"type": "null"})
        return " or ".join(kinds)
    if "const" in made:
        return _value(made["const"])
    if "enum" in made:
        return ", ".join(_value(value) for value in made["enum"])
    match made.get("type"):
        case "array":
            return f"list of {described_type(made.get('items', {}))}"
        case "object":
            inner: JsonSchema | bool = made.get("additionalProperties", False)
            return f"object of {described_type(inner)}" if inner and not isinstance(inner, bool) else "object"
        case str(kind):
            return kind
        case _:
            return "any"


def _value(value: object) -> str:
    return f'`"{value}"`' if isinstance(value, str) else f"`{str(value).lower()}`"
