"""The first argument of handlers: a copy of the adapter for one request, which handlers may change."""

from __future__ import annotations

import copy
from typing import Any

from jumpseat.adapters.declared.declaration import Declaration
from jumpseat.adapters.declared.schema import MODEL, WIRE_MODEL, Choice, choices_of, default_of
from jumpseat.agent.blocks import JsonObject
from jumpseat.declared.paths import follow


class AdapterView:
    """A copy of a declaration for one request.

    Changes made by a handler are visible to later handlers of the same request only.

    ``model`` is the chosen model: ``{name, vendor, formatted_name, opts, meta}``. ``env_replaced`` holds the values
    of ``env`` once they are resolved, which is after ``setup``.
    """

    def __init__(self, declaration: Declaration, model: str | None = None) -> None:
        self.name = declaration.name
        self.type = declaration.type
        self.formatted_name = declaration.title
        self.vendor = declaration.vendor or declaration.name
        self.roles = dict(declaration.roles)
        self.features = dict(declaration.features)
        self.url = declaration.url
        self.env = dict(declaration.env)
        self.env_replaced: dict[str, Any] = {}
        self.headers: dict[str, Any] = dict(declaration.headers)
        # Only tables that settings are written to are copied deeply; the others may contain functions.
        self.parameters: JsonObject = copy.deepcopy(declaration.parameters)
        self.body: JsonObject = copy.deepcopy(declaration.body)
        self.opts: JsonObject = dict(declaration.opts)
        self.temp: JsonObject = {}
        self.meta: JsonObject = dict(declaration.meta)
        self.schema = dict(declaration.settings)
        self.model: JsonObject = {}
        if (entry := self.schema.get(MODEL)) is not None and model is not None:
            # Functions and `env` entries refer to the model in use by the path of its default.
            self.schema[MODEL] = entry.model_copy(update={"default": model})
        self._choose(model)

    def lookup(self, path: str) -> Any:
        """Return the value at a dotted path, or ``None``."""
        return follow(self, path)

    def _choose(self, model: str | None) -> None:
        entry = self.schema.get(MODEL)
        if entry is None:
            self.model = {"name": model, "vendor": self.vendor, "formatted_name": model, "opts": {}, "meta": {}}
            return
        name = model if model is not None else default_of(entry, self)
        choices = choices_of(MODEL, entry, self)
        known = next(
            (choice for choice in choices if name in (choice.id, choice.meta.get(WIRE_MODEL))), Choice(id=str(name))
        )
        self.model = {
            "name": name,
            "vendor": self.vendor,
            "formatted_name": known.formatted_name or name,
            "opts": dict(known.opts),
            "meta": {**self.meta, **known.meta},
        }
        # The options of the model override those of the adapter.
        self.opts = {**self.opts, **known.opts}
