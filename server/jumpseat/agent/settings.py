"""The settings of a session, its login among them. Only creation, resumption and the option methods change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, Self

from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.blocks import JsonObject
from jumpseat_protocol.events import SessionMode
from jumpseat_protocol.sessions import CustomAgentConfig, KeptOptions, ManagedPermissions, ManagedSettings
from jumpseat_protocol.structs import Discreet
from jumpseat_protocol.tools import SubagentSettings
from jumpseat_protocol.wire import WireModel


class Login(Protocol):
    """An account on GitHub. ``host`` is the URL of the site, ``name`` the user's login.

    ``facts`` are further properties of the account that the site returned. ``auth_type`` is the protocol's word for
    the origin of the credentials.
    """

    @property
    def auth_type(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def name(self) -> str | None: ...

    @property
    def variable(self) -> str | None:
        """The environment variable that has the token."""
        ...

    @property
    def facts(self) -> JsonObject | None: ...

    async def token(self) -> str:
        """Return the current token. Callers must not store it, since the next call may return another one.

        Raises:
            ProviderAuthError: no token is available.
        """
        ...


class HostPolicy(WireModel):
    """The policy of a host, as it was sent and as it is stored: see ``permissions/host_policy.py``.

    In its rules, ``/`` is the folder ``root``, and ``./`` the folder ``cwd``. ``client`` names the connection that
    has set the policy, and may replace it.
    """

    settings: ManagedSettings
    root: str
    cwd: str
    client: str

    @property
    def permissions(self) -> ManagedPermissions:
        return self.settings.permissions or ManagedPermissions()


_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class SessionSettings(Discreet, Struct):
    """All settings of one session: the options of its clients, and the server's own.

    ``options``: the options of clients, those that were never set with their defaults. They are replaced, never
    changed in place: copies of the settings share them. Folders among them are absolute.
    ``login``: contains secrets, and is therefore in no file.
    ``allowed_models``: the only models that the session may use; ``None`` for all.
    ``found_agents``: custom agents read from files.
    ``host_policies``: the policies that hosts have set, which no other client can change.
    ``sub_agent_settings``: models, efforts and limits of sub-agents that the user has set for the open session.
    ``lost_mcp_servers``: MCP servers of a resumed session that cannot be restored, by name, each with the parts of
    its configuration that were not stored; ``lost_agent_servers``: the same per custom agent.
    """

    hidden = ("options", "login")
    cwd: Path
    options: KeptOptions = field(default_factory=KeptOptions.model_construct)
    mode: SessionMode = "interactive"
    login: Login | None = None
    allowed_models: list[str] | None = None
    found_agents: Sequence[CustomAgentConfig] = ()
    host_policies: list[HostPolicy] = field(default_factory=list[HostPolicy])
    sub_agent_settings: SubagentSettings | None = None
    lost_mcp_servers: Mapping[str, str] = field(default_factory=lambda: _NONE)
    lost_agent_servers: Mapping[str, dict[str, str]] = field(default_factory=lambda: _NONE)

    @classmethod
    def of(cls, cwd: Path, **options: Any) -> Self:
        """Return the settings of a session with these options."""
        settings = cls(cwd)
        settings.set_options(**options)
        return settings

    def set_options(self, **options: Any) -> None:
        """Change options, by their names in the table.

        Raises:
            TypeError: there is no such option.
        """
        if unknown := options.keys() - vars(self.options).keys():
            raise TypeError(f"unknown option {min(unknown)!r}")
        current = vars(self.options)
        if all(current[name] is value for name, value in options.items()):
            return
        # A copy by pydantic would build the model.
        given = self.options.model_fields_set | options.keys()
        self.options = KeptOptions.model_construct(given, **current | options)

    def with_options(self, **options: Any) -> SessionSettings:
        """Return a copy with changed options, as in :meth:`set_options`."""
        changed = replace(self)
        changed.set_options(**options)
        return changed

    def adopt(self, changed: SessionSettings) -> None:
        """Copy all of ``changed`` into the settings that the parts of a live session share."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(changed, name))

    @property
    def custom_agent(self) -> CustomAgentConfig | None:
        """The selected custom agent; ``None`` if there is none."""
        name = self.options.agent
        return None if name is None else next((agent for agent in self.agents if agent.name == name), None)

    @property
    def agents(self) -> list[CustomAgentConfig]:
        """All known custom agents; one registered by the client hides one from a file with the same name."""
        names = {agent.name for agent in self.options.custom_agents}
        return [*self.options.custom_agents, *(agent for agent in self.found_agents if agent.name not in names)]

    def for_model(self) -> SessionSettings:
        """Return these settings with the custom agent's model and reasoning effort, if it has any."""
        agent, options = self.custom_agent, self.options
        if agent is None or (agent.model is None and agent.reasoning_effort is None):
            return self
        model = agent.model or options.model
        # The session's effort may be unknown to the agent's model.
        effort = agent.reasoning_effort or (options.reasoning_effort if model == options.model else None)
        return self.with_options(model=model, reasoning_effort=effort)

    def allows(self, model: str | None) -> bool:
        """Return whether the session may use ``model``."""
        return self.allowed_models is None or model in self.allowed_models

    def named_tools(self) -> list[str]:
        """Return the names and patterns of tools listed by the client and by the custom agent."""
        agent = self.custom_agent
        return [*(self.options.available_tools or ()), *((agent.tools or ()) if agent else ())]
