"""The description of one model provider, as the modules of ``adapters/providers`` give it.

A description is cheap: importing one imports neither the adapter nor its wire format.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

if TYPE_CHECKING:
    from jumpseat.adapters.adapter import Adapter
    from jumpseat.adapters.listing import ModelListing

EndpointFamily: TypeAlias = Literal["openai", "azure", "anthropic"]

SettingEntry: TypeAlias = Mapping[str, Any]
"""An entry of a settings schema; ``adapters/declared/schema.py`` describes its keys."""

SettingEntries: TypeAlias = Mapping[str, SettingEntry]

SCRIPTED: Final = "scripted"
"""The type of models that follow a script. They make no request, so no provider has this type."""


class EnvironmentVariables(NamedTuple):
    """The environment variables that configure a provider without a table in ``config.toml``.

    ``rank`` orders the providers found in the environment, lowest first. A ``fallback`` provider has a key that
    many people keep in their environment for other programs: its models can be named as ``provider/model``, but it
    serves other requests only where nothing else is configured.
    """

    base_url: str
    model: str
    rank: int
    fallback: bool = True


class ProviderInfo(Struct, frozen=True, kw_only=True):
    """The built-in facts about a provider.

    ``type`` is the name of the provider's module and of its type in configurations; ``aliases`` are other names for
    that type. ``adapter`` is the adapter's class as ``"module:Class"``, relative to ``jumpseat.adapters.wires``, or
    absolute. ``family`` is the kind of endpoint that clients of the protocol know, ``None`` for others.

    ``key_variable`` is the environment variable in which users keep their key, ``other_key_variables`` are further
    ones; ``environment`` names the variables that configure the provider by themselves. ``options`` are defaults of
    ``Endpoint.options``, ``headers`` go with every request.

    ``listing`` reads the provider's list of models, ``None`` where it has none. ``settings`` are the entries of the
    settings schema, in the order of a form. ``own_limits`` marks a host that limits models in its own way, so that
    of the facts in ``known_models`` files only the abilities hold.
    """

    type: str
    adapter: str
    aliases: tuple[str, ...] = ()
    family: EndpointFamily | None = "openai"
    default_base_url: str | None = None
    key_variable: str | None = None
    other_key_variables: tuple[str, ...] = ()
    environment: EnvironmentVariables | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    listing: ModelListing | None = None
    settings: SettingEntries = field(default_factory=dict[str, SettingEntry])
    own_limits: bool = False

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The environment variables in which users keep their key, the preferred one first."""
        return (() if self.key_variable is None else (self.key_variable,)) + self.other_key_variables

    def load(self) -> Adapter:
        """Import the adapter's class and create an adapter for this provider."""
        module, _, class_name = self.adapter.partition(":")
        path = module if "." in module else f"jumpseat.adapters.wires.{module}"
        adapter: Adapter = getattr(import_module(path), class_name)(
            self.type, options=self.options, headers=self.headers
        )
        return adapter

    def settings_schema(self) -> dict[str, Any]:
        """Return the schema of this provider's settings, in the order of a form."""
        return {
            key: {"order": place, "optional": True, **entry}
            for place, (key, entry) in enumerate(self.settings.items(), 1)
        }
