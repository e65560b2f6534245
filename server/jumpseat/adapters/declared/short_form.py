"""Convert configuration tables with short keys into declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jumpseat.adapters.declared.declaration import API_KEY, BASE_URL
from jumpseat.adapters.declared.merged import TOOL_PROTOCOL, MergedAdapter
from jumpseat.adapters.declared.schema import MODEL, WIRE_MODEL

PROTOCOLS: Final = ("http", "acp")
"""The values of ``type`` in a declaration."""

_SHORT: Final = ("type", "base_url", "api_key_env", "models", TOOL_PROTOCOL)


def expand_short_form(raw: Mapping[str, Any], base: MergedAdapter | None) -> dict[str, Any]:
    """Return a configuration table with its short keys replaced by those of a declaration."""
    own = {key: value for key, value in raw.items() if key not in _SHORT and value is not None}
    if raw.get("type") in PROTOCOLS:
        own["type"] = raw["type"]
    env: dict[str, Any] = dict(own.get("env") or {})
    if raw.get("base_url"):
        env[BASE_URL] = {"value": raw["base_url"], "literal": True}
        if base is not None and base.declaration.url is not None and base.wire is not None:
            own.setdefault("url", None)
    if raw.get("api_key_env"):
        env[API_KEY] = {"value": raw["api_key_env"], "variable": True}
    if env:
        own["env"] = env
    if raw.get(TOOL_PROTOCOL):
        own["opts"] = {**dict(own.get("opts") or {}), TOOL_PROTOCOL: raw[TOOL_PROTOCOL]}
    if raw.get("models"):
        schema = dict(own.get("schema") or {})
        schema[MODEL] = {**dict(schema.get(MODEL) or {}), "choices": [_choice(model) for model in raw["models"]]}
        schema[MODEL].setdefault("default", schema[MODEL]["choices"][0]["id"])
        own["schema"] = schema
    return own


def _choice(model: Any) -> dict[str, Any]:
    """Convert a model of the short form into a choice."""
    if isinstance(model, str):
        return {"id": model}
    meta = {
        "context_window": model.get("context_window"),
        "max_tokens": model.get("max_output_tokens"),
        "price": model.get("price"),
        WIRE_MODEL: model.get("wire_model"),
    }
    choice: dict[str, Any] = {"id": model["id"], "meta": {k: v for k, v in meta.items() if v is not None}}
    if model.get("name"):
        choice["formatted_name"] = model["name"]
    able = {
        "has_vision": model.get("vision"),
        "can_use_tools": model.get("tools"),
        "can_reason": model.get("reasoning"),
        TOOL_PROTOCOL: model.get(TOOL_PROTOCOL),
    }
    choice["opts"] = {key: value for key, value in able.items() if value is not None}
    return choice
