"""All adapters under test, and the recordings of each.

===================== ================================================================================
adapters              recordings
===================== ================================================================================
those of the server   ``data/NAME``, and those of the class whose decoder they inherit
``over_NAME``         the same: a declared adapter of three lines that extends NAME, one for each decoder
``data/adapters/*``   ``data/NAME``, and those of the extended adapter unless they decode answers themselves
===================== ================================================================================

Adapters that share a class all decode the recordings of the adapter with the most.

New adapters, of the server or in ``data/adapters``, and their recordings are discovered.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.adapter import Caller, Endpoint, PreparedCall
from jumpseat.adapters.declared.catalogue import AdapterCatalogue
from jumpseat.adapters.declared.pipeline import DeclaredCaller
from jumpseat.adapters.models.wire_caller import WireCaller
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.agent.model import ModelRequest
from jumpseat.declared.env import EnvResolver
from tests.adapters.golden import DATA

HEADERS = {"X-Mine": "endpoint", "user-agent": "mine/1"}
KEY = "the-key"
BASE_URL = "http://127.0.0.1:1/base"

OVER = "over_"


@dataclass(frozen=True)
class Subject:
    """One adapter.

    ``folders`` have its recordings, its own folder first; ``twin`` is the adapter whose request format it shares.
    """

    name: str
    folders: tuple[str, ...]
    twin: str | None = None

    def __str__(self) -> str:
        return self.name

    def caller(self, base_url: str = BASE_URL, key: str = KEY) -> Caller:
        """Return the caller for ``base_url`` with ``key``."""
        if self.name in PROVIDERS:
            endpoint = Endpoint(base_url, api_key=key, headers=HEADERS, user_agent="jumpseat/0")
            return WireCaller(load_adapter(self.name), endpoint)
        known = CATALOGUE.get(self.name)
        endpoint = Endpoint("", headers=HEADERS, user_agent="jumpseat/0", options=known.declaration.options)
        given = {"base_url": base_url, "api_key": key}
        resolver = EnvResolver({"PATH": os.environ["PATH"]})
        return DeclaredCaller(known.declaration, known.wire, resolver, given, endpoint, kind=known.kind)

    async def prepare(self, request: ModelRequest) -> PreparedCall:
        """Prepare one call."""
        return await self.caller().prepare(request)

    def streams(self) -> list[Path]:
        """Return its recorded streams, and those of the adapters whose decoder it inherits."""
        return self._recorded(".sse", ".jsonl")

    def own_streams(self) -> list[Path]:
        """Return the recorded streams in its own folder."""
        return [path for path in self.streams() if path.parent.name == self.name]

    def wholes(self) -> list[Path]:
        """Return the recorded whole answers, its own and the inherited ones."""
        return self._recorded(".json")

    def _recorded(self, *suffixes: str) -> list[Path]:
        return [
            path for folder in self.folders for path in sorted((DATA / folder).glob("*")) if path.suffix in suffixes
        ]


def resigned(value: Any, folder: str, subject: Subject) -> Any:
    """Replace the signature of the adapter of ``folder`` in ``value`` by that of ``subject``."""
    maker = load_adapter(folder).signature if folder in PROVIDERS else folder
    return _replaced(value, maker, subject.caller().signs_as)


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Struct):
        fields = {name: _replaced(getattr(value, name), old, new) for name in value.__struct_fields__}
        if fields.get("provider") == old:
            fields["provider"] = new
        return replace(value, **fields)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        marked = table.get("provider") == old and "provider_data" in table
        return {k: new if marked and k == "provider" else _replaced(v, old, new) for k, v in table.items()}
    if isinstance(value, list):
        return [_replaced(item, old, new) for item in cast("list[Any]", value)]
    return value


def _read_by(name: str) -> tuple[str, ...]:
    """Return the folders of a built-in adapter: its own, and the largest of each class that it decodes with."""
    kind = type(load_adapter(name))
    fullest: dict[type[Any], str] = {}
    for other in PROVIDERS:
        base = type(load_adapter(other))
        if base in kind.__mro__ and kind.decoder is base.decoder:
            fullest[base] = max(
                fullest.get(base, other), other, key=lambda folder: len([*(DATA / folder).glob("*")])
            )
    return tuple(dict.fromkeys((name, *fullest.values())))


@cache
def _subjects() -> list[Subject]:
    packaged = [Subject(name, _read_by(name)) for name in PROVIDERS]
    declared = [
        Subject(f"{OVER}{subject.name}", subject.folders, twin=subject.name)
        for subject in packaged
        if subject.name in EXTENDED
    ]
    own: list[Subject] = []
    for path in sorted((DATA / "adapters").glob("*.*")):
        folders = (path.stem,)
        if path.suffix == ".toml":
            folders += _read_by(tomllib.loads(path.read_text(encoding="utf-8"))["extends"])
        own.append(Subject(path.stem, folders))
    return [*packaged, *declared, *own]


# Declared adapters pass bytes to the decoder that they extend: one adapter per decoder suffices.
EXTENDED = (
    "anthropic",
    "copilot",
    "gemini",
    "gemini_interactions",
    "mistral",
    "ollama",
    "openai",
    "openai_responses",
)
CATALOGUE = AdapterCatalogue({f"{OVER}{name}": {"extends": name} for name in EXTENDED}, DATA)
SUBJECTS = _subjects()
