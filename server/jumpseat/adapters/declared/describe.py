"""Describe an adapter to clients, without functions and secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit, urlunsplit

from jumpseat.adapters.declared.declaration import BASE_URL
from jumpseat.adapters.declared.merged import MergedAdapter
from jumpseat.adapters.declared.schema import MODEL, choices_of, default_of, is_enabled, ordered
from jumpseat.adapters.declared.view import AdapterView
from jumpseat.declared.env import SECRET_NAME, read_entry
from jumpseat.declared.values import entry_value
from jumpseat_protocol.adapters import AdapterChoice, AdapterDescription, AdapterEnvEntry, AdapterSetting

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_CALLABLE: Final = object()


def describe(adapter: MergedAdapter, model: str | None = None) -> AdapterDescription:
    """Describe ``adapter`` with the settings for ``model``, or for its default model.

    Raises:
        ConfigError: a function of the declaration failed.
    """
    declaration = adapter.declaration
    if model is None:
        model = next((offer.id for offer in adapter.offers()), None)
    view = AdapterView(declaration, model)
    return AdapterDescription(
        name=declaration.name,
        title=declaration.title,
        origin=adapter.origin,
        type=declaration.type,
        vendor=declaration.vendor,
        wire_name=adapter.kind,
        base_url=_without_secrets(entry_value(declaration.env.get(BASE_URL))),
        url=_without_secrets(declaration.url),
        env=[_env_entry(view, name, raw) for name, raw in declaration.env.items()],
        headers=list(declaration.headers),
        handlers=sorted(declaration.handlers),
        roles=declaration.roles,
        features=declaration.features,
        parameters=_plain(declaration.parameters),
        body=_plain(declaration.body),
        opts=_plain(view.opts),
        meta=_plain(declaration.meta),
        settings=[_setting(adapter, view, key) for key in ordered(view.schema) if not key.startswith("_")],
    )


def _setting(adapter: MergedAdapter, view: AdapterView, key: str) -> AdapterSetting:
    entry = view.schema[key]
    # In the view, the chosen model replaces the default one.
    default = adapter.declaration.settings[key].default if key == MODEL else default_of(key, entry, view)
    choices = choices_of(key, entry, view)
    enabled = is_enabled(key, entry, view)
    return AdapterSetting(
        key=key,
        type=entry.type,
        description=entry.desc,
        default=_plain(default, None),
        choices=[
            AdapterChoice(
                id=choice.id,
                name=choice.formatted_name or choice.id,
                description=choice.description,
                meta=_plain(choice.meta),
                opts=_plain(choice.opts),
            )
            for choice in choices
        ],
        minimum=entry.minimum,
        maximum=entry.maximum,
        optional=entry.optional,
        enabled=enabled,
        mapping=entry.mapping,
    )


def source_of_entry(view: AdapterView, name: str, raw: Any) -> str:
    """Return where the value of an entry of ``env`` comes from, without looking it up."""
    return _env_entry(view, name, raw).source


def _env_entry(view: AdapterView, name: str, raw: Any) -> AdapterEnvEntry:
    entry = read_entry(f"{view.name}.env.{name}", raw)
    value, source, detail = entry.value, "literal", None
    if entry.variable:
        source, detail = ("variable", str(value)) if value else ("none", None)
    elif callable(value):
        source = "function"
    elif isinstance(value, str) and not entry.literal:
        if value.startswith("cmd:"):
            source = "command"
        elif value.startswith("file:"):
            source = "file"
        elif view.lookup(value) not in (None, False):
            source, detail = "path", value
        elif _VARIABLE.fullmatch(value):
            source, detail = "variable", value if "_" in value else None
    return AdapterEnvEntry(name=name, source=source, detail=detail, optional=entry.optional)


def _without_secrets(url: Any) -> str | None:
    """Return a URL without user, password and query, which may be secret."""
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _plain(value: Any, missing: Any = _CALLABLE) -> Any:
    """Return ``value`` as JSON, without functions and without strings with secret names."""
    if isinstance(value, Mapping):
        table = cast("Mapping[Any, Any]", value)
        return {
            str(key): plain
            for key, item in table.items()
            if not _is_secret(key, item) and (plain := _plain(item)) is not _CALLABLE
        }
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        return [plain for item in items if (plain := _plain(item)) is not _CALLABLE]
    return value if value is None or isinstance(value, (str, int, float, bool)) else missing


def _is_secret(key: Any, value: Any) -> bool:
    """Return whether a value is secret by its name; numbers are not, because ``max_tokens`` is a limit."""
    return isinstance(value, str) and bool(SECRET_NAME.search(str(key)))
