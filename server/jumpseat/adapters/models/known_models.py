"""Facts about well-known models, for where neither the user nor the client nor the provider gives them.

They stand beside the providers, in ``adapters/providers/NAME.toml``. They fill gaps and inform; they govern no
request. A model without an entry stays as it is. Facts that are not certain are left out.

A table ``[VENDOR]`` has ``prefixes``, the names of the vendor in front of a model's name (``openai/gpt-5``). A
table ``[VENDOR.models."NAME"]`` describes a model under the name that it has at its vendor's own API, in lower case
and without its date:

==============  ================================================================================================
``name``        the name for people
``also``        other names of the same model
``context``     tokens of prompt and answer together
``input``       most tokens of a prompt, where that is less than the context leaves
``output``      most tokens of an answer, reasoning included
``vision``      whether the model takes images
``tools``       whether it calls tools
``reasoning``   whether it can reason before it answers
``efforts``     the levels of reasoning effort at its vendor's API; without levels there are budgets or nothing
``price``       US dollars per million tokens, at the vendor's list price for prompts of the shortest class:
                ``input``, ``output``, ``cache_read``, ``cache_write``
==============  ================================================================================================

Models with open weights have neither an output limit nor a price: those depend on the host.

A name is looked up in lower case, as it is; then without its date or version suffix (``-20250929``,
``-2025-08-07``, ``@20250929``, ``-preview-05-06``, ``-001``, ``-latest``, Ollama's ``:latest``). In front of it may
stand the collection ``models/``, or a prefix of its vendor (``openai/gpt-5``), with anything before that. Nothing
else is cut off or guessed: ``gpt-5`` never matches ``gpt-5-mini``, nor one vendor's name another's model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from jumpseat.adapters import providers
from jumpseat.adapters.providers import PROVIDERS
from jumpseat.adapters.wire import as_list, as_object, as_text
from jumpseat.agent.model import ModelInfo, Price

_COLLECTION: Final = "models"
_TIME: Final = re.compile(
    r"([-@]\d{8}|-\d{4}-\d{2}-\d{2}|-preview-\d{2}-(\d{2}|\d{4})|-00\d|[-@:]latest)\Z", re.ASCII
)
_VENDOR: Final = re.compile(r"\[(\w+)\]$", re.MULTILINE)
_MODEL: Final = re.compile(r'\[(\w+)\.models\."([^"]+)"\]')
_ALSO: Final = re.compile(r"^also = \[(.*)\]$", re.MULTILINE)
_BLANK_LINE: Final = "\n\n"


def fact_files() -> list[Path]:
    """Return the files with facts, sorted by name."""
    files = (path for folder in providers.__path__ for path in Path(folder).glob("*.toml"))
    return sorted(files, key=lambda path: path.name)


class KnownModels:
    """The facts of all files. They are read at the first look-up, and only the entry of each name is parsed."""

    def __init__(self) -> None:
        self._found: dict[str, ModelInfo | None] = {}

    def find(self, name: str) -> ModelInfo | None:
        """Return the facts about the model that providers call ``name``; ``None`` without an entry."""
        if name not in self._found:
            self._found[name] = self._find(name.strip().lower())
        return self._found[name]

    def vendors(self, name: str) -> frozenset[str]:
        """Return the names of the vendor of the model that providers call ``name``; none without an entry."""
        found = self._entry(name.strip().lower())
        return frozenset() if found is None else self._prefixes[found[0]]

    def names(self) -> list[str]:
        """Return the names of all models with an entry, sorted."""
        return sorted({head[2] for block in self._blocks if (head := _MODEL.match(block)) is not None})

    def complete(self, info: ModelInfo, name: str, adapter: str) -> ModelInfo:
        """Fill the gaps of ``info``. ``name`` is the model's name at its provider, whose type is ``adapter``."""
        known = self.find(name)
        if known is None:
            return info
        if adapter in PROVIDERS and PROVIDERS[adapter].own_limits:
            known = replace(known, context_window=None, max_prompt_tokens=None, max_output_tokens=None, price=None)
        window = info.context_window
        if window is not None and window != known.context_window:
            # The limits belong to the known window.
            known = replace(known, max_prompt_tokens=None, max_output_tokens=None)
        return fill_gaps(info, known)

    def _find(self, name: str) -> ModelInfo | None:
        found = self._entry(name)
        if found is None:
            return None
        vendor, block = found
        return _info(vendor, as_object(_parse(block)[vendor])["models"])

    def _entry(self, name: str) -> tuple[str, str] | None:
        """Return the vendor and the text of a model."""
        *path, last = name.split("/")
        plain = _TIME.sub("", last)
        for candidate in dict.fromkeys((last, plain)):
            entry = self._entries.get(candidate)
            if entry is None:
                continue
            if path and path[-1] != _COLLECTION and path[-1] not in self._prefixes[entry[0]]:
                return None
            return entry
        return None

    @cached_property
    def _blocks(self) -> list[str]:
        texts = (path.read_text(encoding="utf-8") for path in fact_files())
        return [block for text in texts for block in text.split(_BLANK_LINE)]

    @cached_property
    def _entries(self) -> Mapping[str, tuple[str, str]]:
        """Vendor and text of each model, by name. Parsing all files would cost the first turn 10 ms."""
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
                vendors[head[1]] = frozenset(as_text(prefix) for prefix in prefixes)
        return vendors


def fill_gaps(info: ModelInfo, more: ModelInfo) -> ModelInfo:
    """Fill the gaps of ``info`` from ``more``, except its identity and whether it is enabled."""
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
