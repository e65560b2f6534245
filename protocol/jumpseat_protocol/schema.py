"""The protocol as one JSON Schema (2020-12), generated from the tables and types of this package.

``jumpseat schema`` prints it; ``protocol/schema/jumpseat.schema.json`` in the repository is a copy.

The root has a property per table: requests of clients, requests of the server, notifications, and events by type.
Code generators turn it into an index of the protocol. Optional fields depend on the sender:

* In a message of a client, ``null`` means absent, so every optional field may be ``null``.
* In a message of the server, a field without a value is left out, and one with a default is always present.

This module is slow to import; only the generation of the schema needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

import orjson
from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from jumpseat_protocol import shell
from jumpseat_protocol.complete import EVENT, CompleteEvent
from jumpseat_protocol.descriptions import COMMON, field_docstrings
from jumpseat_protocol.envelope import ErrorObject, RequestId
from jumpseat_protocol.events import EVENT_TYPES, Event, Payload, SessionMode
from jumpseat_protocol.methods import CLIENT_REQUESTS, PROTOCOL_VERSION
from jumpseat_protocol.server_requests import SERVER_REQUESTS, Callback
from jumpseat_protocol.telemetry import EVENT as GITHUB_TELEMETRY
from jumpseat_protocol.telemetry import GitHubTelemetryParams
from jumpseat_protocol.wire import LateValidator, Method, WireModel

JsonSchema: TypeAlias = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
INTRODUCTION: Final = (
    "The Copilot SDK protocol, version {version}, as jumpseat speaks it: JSON-RPC 2.0 in Content-Length frames. "
    "Fields that are not named here are ignored, unless a schema refuses them. "
    "In what a client sends, null means absent."
)
SECTIONS: Final = {
    "clientRequests": "The requests of clients.",
    "serverRequests": "The requests of the server, to clients that have declared them.",
    "notifications": "The notifications: the params of each.",
    "events": "The events in session.event, by type.",
    "error": "The error member of a response.",
}

# Schemas of results that the table gives as plain JSON types, and of fields that hold events.
_EVENTS: Final = {"description": "The events.", "type": "array", "items": {"$ref": "#/$defs/SessionEvent"}}
_STRINGS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_PLAIN_RESULTS: Final[Mapping[str, JsonSchema]] = {
    "session.getMessages": {"type": "object", "properties": {"events": _EVENTS}, "required": ["events"]},
    "session.mode.get": TypeAdapter(SessionMode).json_schema(),
    "session.metadata.getClientMetadata": _STRINGS,
    "session.metadata.updateClientMetadata": _STRINGS,
}
_EVENT_FIELDS: Final[Mapping[tuple[str, str], JsonSchema]] = {
    ("EventLogReadResult", "events"): _EVENTS,
    ("SessionSendAndWaitResult", "response"): {"$ref": "#/$defs/AssistantMessageEvent"},
}


class LifecycleMetadata(WireModel):
    """Times are ISO 8601."""

    start_time: str
    """When the session was created."""
    modified_time: str
    """When it was last changed."""
    summary: str | None = None
    """Its name, or its first prompt, shortened."""


class SessionLifecycleParams(WireModel):
    """Sent to every client of the process, for all sessions. A deleted session has no metadata."""

    type: Literal["session.created", "session.updated", "session.deleted"]
    session_id: str
    metadata: LifecycleMetadata | None = None
    """What is known of the session."""


class CancelRequestParams(WireModel):
    """Either side may cancel its own request, which is answered nevertheless."""

    id: RequestId
    """The id of the request."""


_NOTIFICATIONS: Final[Mapping[str, type[WireModel]]] = {
    "session.lifecycle": SessionLifecycleParams,
    GITHUB_TELEMETRY: GitHubTelemetryParams,
    EVENT: CompleteEvent,
    shell.OUTPUT: shell.ShellOutputParams,
    shell.EXIT: shell.ShellExitParams,
    "$/cancelRequest": CancelRequestParams,
}


def schema() -> JsonSchema:
    """Return the whole document. It depends on the tables only."""
    made, definitions = _types()
    names = {name: name.replace("-", "") for name in definitions}
    for kind, payload in EVENT_TYPES.items():
        names[payload.__name__] = f"{_type_name(kind)}Data"
        definitions[f"{_type_name(kind)}Event"] = _envelope(kind, payload)
    events = {kind: {"$ref": f"#/$defs/{_type_name(kind)}Event"} for kind in EVENT_TYPES}
    definitions["SessionEvent"] = {
        "description": "One event with its envelope. The log of another version may hold further types.",
        "anyOf": list(events.values()),
    }
    definitions["SessionEventParams"] = _object(
        {
            "sessionId": {"description": COMMON["sessionId"], "type": "string"},
            "event": _with_text("The event.", {"$ref": "#/$defs/SessionEvent"}),
        },
        description="Sent to the clients that are attached to the session.",
    )
    for (name, field), schema_of_field in _EVENT_FIELDS.items():
        properties = definitions[name]["properties"]
        properties[field] = _with_text(properties[field]["description"], schema_of_field)
    _describe_by_use(definitions, made)
    made |= {f"{name} result": result for name, result in _PLAIN_RESULTS.items()}

    def requests(table: Mapping[str, Method] | Mapping[str, Callback]) -> JsonSchema:
        return _object({name: _request(made, name, row.does) for name, row in table.items()})

    sections = {
        "clientRequests": requests(CLIENT_REQUESTS),
        "serverRequests": requests(SERVER_REQUESTS),
        "notifications": _object(
            {
                "session.event": {"$ref": "#/$defs/SessionEventParams"},
                **{name: made[name] for name in _NOTIFICATIONS},
            }
        ),
        "events": _object(events),
        "error": made["error"],
    }
    document = _object(
        {name: {"description": text, **sections[name]} for name, text in SECTIONS.items()},
        title="Protocol",
        description=INTRODUCTION.format(version=PROTOCOL_VERSION),
    )
    return _tidy({"$schema": DIALECT, **document, "$defs": definitions}, names)


def _types() -> tuple[dict[str, JsonSchema], dict[str, JsonSchema]]:
    """Return the schema of every type in the tables by its role, and the definitions that they refer to."""
    wanted: dict[str, tuple[Any, JsonSchemaMode]] = {"error": (ErrorObject, "serialization")}
    for name, method in CLIENT_REQUESTS.items():
        wanted[f"{name} params"] = (method.params, "validation")
        wanted[f"{name} result"] = (method.result, "serialization")
    for name, callback in SERVER_REQUESTS.items():
        wanted[f"{name} params"] = (callback.params, "serialization")
        wanted[f"{name} result"] = (callback.result, "validation")
    for name, payload in {**_NOTIFICATIONS, **EVENT_TYPES}.items():
        wanted[name] = (payload, "serialization")
    made, rest = TypeAdapter.json_schemas(
        [(name, mode, TypeAdapter(kind)) for name, (kind, mode) in wanted.items()], schema_generator=_Generator
    )
    return {name: value for (name, _), value in made.items()}, rest["$defs"]


def encoded() -> bytes:
    """Return the document as it is printed and stored in the repository."""
    return orjson.dumps(schema(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


class _Generator(GenerateJsonSchema):
    """Generates schemas with the rules for optional fields above, and without a title for every field."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        inner = field["schema"]
        if self.mode == "serialization" and inner["type"] == "default":
            return "default_factory" in inner or inner["default"] is not None
        return super().field_is_required(field, total)

    def default_schema(self, schema: Any) -> JsonSchema:
        inner = schema["schema"]
        if self.mode == "serialization":
            # The result of a factory is sent, also if it is `null`.
            is_left_out = inner["type"] == "nullable" and "default_factory" not in schema
            return self.generate_inner(inner["schema"] if is_left_out else inner)
        made = self.generate_inner(inner) if inner["type"] == "nullable" else _or_null(self.generate_inner(inner))
        if schema.get("default") is None:
            return made
        return {**made, "default": self.encode_default(schema["default"])}

    def function_plain_schema(self, schema: Any) -> JsonSchema:
        validate = schema["function"]["function"]
        if isinstance(validate, LateValidator):
            return self.generate_inner(validate.adapter.core_schema)
        return super().function_plain_schema(schema)

    def dict_schema(self, schema: Any) -> JsonSchema:
        # Older versions of pydantic leave this out, which means the same.
        return {"additionalProperties": True, **super().dict_schema(schema)}

    def tagged_union_schema(self, schema: Any) -> JsonSchema:
        # "discriminator" is a keyword of OpenAPI; the constants of the members say the same.
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}

    def model_schema(self, schema: Any) -> JsonSchema:
        return self._with_nulls(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> JsonSchema:
        return self._with_nulls(super().dataclass_schema(schema), schema["cls"])

    def _with_nulls(self, made: JsonSchema, cls: type) -> JsonSchema:
        for name in getattr(cls, "sent_as_null", ()) if self.mode == "serialization" else ():
            made["properties"][name] = _or_null(made["properties"][name])
            made["required"] = [item for item in made["properties"] if item in {*made.get("required", ()), name}]
        _describe_members(made, cls)
        return _described(made, cls)


def _object(properties: Mapping[str, JsonSchema], **more: Any) -> JsonSchema:
    """Return the schema of an object with ``properties``, all required."""
    return {**more, "type": "object", "properties": dict(properties), "required": list(properties)}


def _request(made: Mapping[str, JsonSchema], name: str, does: str) -> JsonSchema:
    parts = {part: _with_text(f"The {part} of `{name}`.", made[f"{name} {part}"]) for part in ("params", "result")}
    return _object(parts, description=does)


def _envelope(kind: str, payload: type[Payload]) -> JsonSchema:
    made = _object(
        {
            "id": {"type": "string", "format": "uuid"},
            "timestamp": {"type": "string", "format": "date-time"},
            "parentId": {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]},
            "type": {"type": "string", "const": kind},
            "data": {"$ref": f"#/$defs/{payload.__name__}"},
            "ephemeral": {"type": "boolean", "const": True},
            "agentId": {"type": "string"},
        }
    )
    made["required"].remove("agentId")
    if payload.persisted:
        made["required"].remove("ephemeral")
    kept = "It is stored." if payload.persisted else "It is not stored."
    text = _prose(payload.__doc__ or "", _wire_names(payload))
    made["description"] = f"{text} {kept}".strip()
    _describe_members(made, Event)
    return made


def _or_null(made: JsonSchema) -> JsonSchema:
    """Return a schema that also allows ``null``, as an empty schema does already."""
    return {"anyOf": [made, {"type": "null"}]} if made else made


def _wire_names(cls: type[Any]) -> dict[str, str]:
    """Return the wire names of the fields of ``cls``."""
    names = {name: field.alias or name for name, field in getattr(cls, "model_fields", {}).items()}
    return names | dict(
        zip(getattr(cls, "__struct_fields__", ()), getattr(cls, "__struct_encode_fields__", ()), strict=True)
    )


def _describe_members(made: JsonSchema, cls: type[Any]) -> None:
    """Add the descriptions of members that have none."""
    names = _wire_names(cls)
    texts = {names.get(name, name): _prose(text, names) for name, text in field_docstrings(cls).items()}
    for name, member in made["properties"].items():
        if text := texts.get(name) or COMMON.get(to_camel(name)):
            made["properties"][name] = _with_text(text, member)


def _describe_by_use(definitions: dict[str, JsonSchema], made: Mapping[str, JsonSchema]) -> None:
    """Describe types of params and results that say nothing of themselves by the methods that they belong to."""
    uses: dict[str, dict[str, list[str]]] = {}
    for role, use in made.items():
        method, _, part = role.partition(" ")
        if part and use.keys() == {"$ref"}:
            uses.setdefault(use["$ref"].rpartition("/")[2], {}).setdefault(part, []).append(f"`{method}`")
    for name, parts in uses.items():
        if not definitions[name].get("description"):
            text = ", and ".join(f"the {part} of {_some(methods)}" for part, methods in parts.items())
            definitions[name] = {"description": f"T{text[1:]}.", **definitions[name]}


def _some(methods: list[str]) -> str:
    """Return the first of many methods, and how many there are."""
    return ", ".join(methods) if len(methods) <= 4 else f"{', '.join(methods[:3])} and {len(methods) - 3} others"


def _with_text(text: str, made: JsonSchema) -> JsonSchema:
    """Return ``made`` with a description.

    Generators of code make a type of its own of a reference that has one, and an object of any value that has one.
    """
    return {"description": text, **({"allOf": [made]} if "$ref" in made or not made else made)}


def _prose(docstring: str, names: Mapping[str, str]) -> str:
    """Return a docstring as Markdown, with wire names in place of field names and a line for each paragraph."""
    text = re.sub(r"``(.*?)``", lambda match: f"`{names.get(match[1], match[1])}`", docstring)
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n")).strip()


def _described(made: JsonSchema, cls: type[Any]) -> JsonSchema:
    """Return ``made`` with the docstring of ``cls`` as its description."""
    made.pop("description", None)
    made.pop("title", None)
    # The default docstring of a dataclass is its signature.
    text = "" if (cls.__doc__ or "").startswith(f"{cls.__name__}(") else cls.__doc__ or ""
    return {"description": _prose(text, _wire_names(cls)), **made} if text else made


def _type_name(kind: str) -> str:
    """Return the name of an event's type: ``AssistantTurnStart`` for ``assistant.turn_start``."""
    return "".join(word.capitalize() for word in re.split(r"[._]", kind))


def _tidy(value: JsonSchema, names: Mapping[str, str]) -> JsonSchema:
    """Return ``value`` with its keywords sorted, its properties as declared, and its types renamed."""
    made: JsonSchema = {}
    for keyword in sorted(value, key=_place):
        inner = value[keyword]
        if keyword == "$ref":
            place, _, name = inner.rpartition("/")
            inner = f"{place}/{names.get(name, name)}"
        elif keyword == "properties":
            inner = {name: _tidy(value, names) for name, value in inner.items()}
        elif keyword == "$defs":
            renamed = {names.get(name, name): value for name, value in inner.items()}
            inner = {name: _tidy(renamed[name], names) for name in sorted(renamed)}
        elif keyword in ("allOf", "anyOf"):
            inner = [_tidy(item, names) for item in inner]
        elif isinstance(inner, dict) and keyword != "default":
            inner = _tidy(cast("JsonSchema", inner), names)
        made[keyword] = inner
    return made


def _place(keyword: str) -> tuple[int, str]:
    """Return the sort key of a keyword; keywords without their own position are sorted by name."""
    return _PLACES.get(keyword, len(_FIRST)), keyword


_FIRST: Final = ("$schema", "$ref", "title", "description", "type", "const", "enum", "format")
_LAST: Final = ("allOf", "anyOf", "items", "properties", "required", "additionalProperties", "default", "$defs")
_PLACES: Final = {keyword: place for place, keyword in enumerate((*_FIRST, "", *_LAST))}
