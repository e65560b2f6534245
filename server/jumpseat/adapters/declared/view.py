"""The first argument of handlers: a copy of the adapter for one request, which handlers may change."""

from __future__ import annotations

import copy
from typing import Any

from jumpseat.adapters.declared.declaration import Declaration
from jumpseat.adapters.declared.schema import MODEL, WIRE_MODEL, Choice, choices_of, default_of
from jumpseat.declared.paths import follow


class Table(dict[str, Any]):
    """A table whose keys are attributes, too, ``None`` if missing: ``self.opts.tools``."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class AdapterView:
    """A copy of a declaration for one request.

    Changes made by a handler are visible to later handlers of the same request only.

    The keys of its tables are attributes, too. ``model`` is the chosen model:
    ``{name, vendor, formatted_name, opts, meta}``. ``env_replaced`` holds the values of ``env`` once they are
    resolved, which is after ``setup``.
    """

    def __init__(self, declaration: Declaration, model: str | None = None) -> None:
        self.name = declaration.name
        self.type = declaration.type
        self.formatted_name = declaration.title
        self.vendor = declaration.vendor or declaration.name
        self.roles = Table(declaration.roles)
        self.features = Table(declaration.features)
        self.url = declaration.url
        self.env = Table(declaration.env)
        self.env_replaced = Table()
        self.headers = Table(declaration.headers)
        # Only tables that settings are written to are copied deeply; the others may contain functions.
        self.parameters = Table(copy.deepcopy(declaration.parameters))
        self.body = Table(copy.deepcopy(declaration.body))
        self.opts = Table(declaration.opts)
        self.temp = Table()
        self.meta = Table(declaration.meta)
        self.schema = Table(declaration.settings)
        self.model = Table()
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
            self.model = Table(name=model, vendor=self.vendor, formatted_name=model, opts={}, meta={})
            return
        name = model if model is not None else default_of(MODEL, entry, self)
        choices = choices_of(MODEL, entry, self)
        known = next(
            (choice for choice in choices if name in (choice.id, choice.meta.get(WIRE_MODEL))), Choice(id=str(name))
        )
        self.model = Table(
            name=name,
            vendor=self.vendor,
            formatted_name=known.formatted_name or name,
            opts=Table(known.opts),
            meta=Table(self.meta, **known.meta),
        )
        # The options of the model override those of the adapter.
        self.opts = Table(self.opts, **known.opts)
