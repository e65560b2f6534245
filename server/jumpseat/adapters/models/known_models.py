"""What the world knows of well-known models, for where neither the user nor the client nor the provider says it.

The facts stand in ``known_models.toml``, which says as of when they are and what each means. They fill gaps and
inform, and govern no request: what a model is asked for is what was said of it, not what is known. A model that is
not in the table stays as it is.

How a name is looked up: in lower case, as it is; then without what names a time of it (``-20250929``,
``-2025-08-07``, ``@20250929``, ``-preview-05-06``, ``-001``, ``-latest``, Ollama's ``:latest``). In front of it may
stand the collection ``models/``, or what its vendor is called (``openai/gpt-5``), with anything before that.
Nothing else is cut off or guessed: ``gpt-5`` is never taken for ``gpt-5-mini``, nor a vendor's model for another's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from jumpseat.adapters.wire import as_list, as_object, as_text
from jumpseat.agent.model import ModelInfo, Price

TABLE: Final = Path(__file__).with_name("known_models.toml")

OWN_LIMITS: Final = frozenset({"githubmodels", "ollama"})
"""Adapters of hosts that limit models in their own way: of theirs only abilities are known."""

_COLLECTION: Final = "models"
_TIME: Final = re.compile(
    r"([-@]\d{8}|-\d{4}-\d{2}-\d{2}|-preview-\d{2}-(\d{2}|\d{4})|-00\d|[-@:]latest)\Z", re.ASCII
)
_VENDOR: Final = re.compile(r"\[(\w+)\]$", re.MULTILINE)
_MODEL: Final = re.compile(r'\[(\w+)\.models\."([^"]+)"\]')
_ALSO: Final = re.compile(r"^also = \[(.*)\]$", re.MULTILINE)
_BLANK_LINE: Final = "\n\n"


class KnownModels:
    """The table. Nothing is read before the first name is looked up, and of the file only what that name needs."""

    def __init__(self, table: Path = TABLE) -> None:
        self._path = table
        self._found: dict[str, ModelInfo | None] = {}

    def find(self, name: str) -> ModelInfo | None:
        """What is known of the model that providers call ``name``; ``None`` where it is not in the table."""
        if name not in self._found:
            self._found[name] = self._find(name.strip().lower())
        return self._found[name]

    def complete(self, info: ModelInfo, name: str, adapter: str) -> ModelInfo:
        """``info`` with its gaps filled. ``name`` is its provider's name of it, ``adapter`` what calls it."""
        known = self.find(name)
        if known is None:
            return info
        if adapter in OWN_LIMITS:
            known = replace(known, context_window=None, max_prompt_tokens=None, max_output_tokens=None, price=None)
        window = info.context_window
        if window is not None and window != known.context_window:
            # Another window has other limits within.
            known = replace(known, max_prompt_tokens=None, max_output_tokens=None)
        return filled(info, known)

    def _find(self, name: str) -> ModelInfo | None:
        *path, last = name.split("/")
        plain = _TIME.sub("", last)
        for one in dict.fromkeys((last, plain)):
            entry = self._entries.get(one)
            if entry is None:
                continue
            vendor, block = entry
            if path and path[-1] != _COLLECTION and path[-1] not in self._prefixes[vendor]:
                return None
            return _info(vendor, as_object(_parse(block)[vendor])["models"])
        return None

    @cached_property
    def _blocks(self) -> list[str]:
        return self._path.read_text(encoding="utf-8").split(_BLANK_LINE)

    @cached_property
    def _entries(self) -> Mapping[str, tuple[str, str]]:
        """Vendor and text of every model, by name. To parse the whole file would take the first turn 10 ms."""
        entries: dict[str, tuple[str, str]] = {}
        for block in self._blocks:
            if (head := _MODEL.match(block)) is None:
                continue
            entries[head[2]] = (head[1], block)
            if (also := _ALSO.search(block)) is not None:
                entries.update(dict.fromkeys(re.findall(r'"([^"]+)"', also[1]), (head[1], block)))
        return entries

    @cached_property
    def _prefixes(self) -> Mapping[str, frozenset[str]]:
        vendors: dict[str, frozenset[str]] = {}
        for block in self._blocks:
            if (head := _VENDOR.match(block)) is not None:
                prefixes = as_list(as_object(_parse(block)[head[1]]).get("prefixes"))
                vendors[head[1]] = frozenset(as_text(one) for one in prefixes)
        return vendors


def filled(info: ModelInfo, more: ModelInfo) -> ModelInfo:
    """``info``, with what only ``more`` knows. Who it is and whether it can be used stays."""
    return replace(
        info,
        vision=more.vision if info.vision is None else info.vision,
        tools=more.tools if info.tools is None else info.tools,
        reasoning=more.reasoning if info.reasoning is None else info.reasoning,
        context_window=info.context_window or more.context_window,
        max_prompt_tokens=info.max_prompt_tokens or more.max_prompt_tokens,
        max_output_tokens=info.max_output_tokens or more.max_output_tokens,
        reasoning_efforts=more.reasoning_efforts if info.reasoning_efforts is None else info.reasoning_efforts,
        price=info.price or more.price,
        vendor=info.vendor or more.vendor,
    )


def _parse(block: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(block)


def _info(vendor: str, models: Any) -> ModelInfo:
    [(name, raw)] = as_object(models).items()
    entry = as_object(raw)
    price = as_object(entry.get("price"))
    return ModelInfo(
        id=name,
        name=entry["name"],
        vendor=vendor,
        vision=entry["vision"],
        tools=entry["tools"],
        reasoning=entry["reasoning"],
        context_window=entry.get("context"),
        max_prompt_tokens=entry.get("input"),
        max_output_tokens=entry.get("output"),
        reasoning_efforts=tuple(entry["efforts"]) if "efforts" in entry else None,
        price=Price(**price) if price else None,
    )
