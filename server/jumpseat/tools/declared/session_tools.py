"""The declared tools of one session: which of them are offered, their instructions and their calls."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from time import monotonic
from typing import Any, Final

from msgspec import Struct

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.declared.calling import HandlerError, call
from jumpseat.declared.env import EnvResolver
from jumpseat.sandbox.session import SessionSandbox
from jumpseat.tools.declared.call import Call, Services
from jumpseat.tools.declared.calling_conventions import bind
from jumpseat.tools.declared.catalogue import ToolCatalogue, ToolEntry
from jumpseat.tools.declared.definition import Definition, Handler
from jumpseat.tools.declared.groups import Group
from jumpseat.tools.declared.view import as_text, schema_of
from jumpseat.tools.filters import SourceName
from jumpseat.tools.shell.captured_commands import Commands
from jumpseat.tools.tool import Ordering, Prepared, ToolContext, ToolOutcome

log = logging.getLogger(__name__)

ANSWER_WITHIN_S: Final = 5.0
"""Time limit of the functions ``enabled`` and ``system_prompt``."""

KEEP_ENABLED_S: Final = 30.0
"""Time for which a result of ``enabled`` is kept."""


class DeclaredTool(Struct, frozen=True):
    """A declared tool in a session."""

    definition: Definition
    services: Services
    always_ask: bool

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def source(self) -> SourceName:
        return "custom"

    @property
    def ordering(self) -> Ordering:
        return "independent" if self.definition.opts.parallel else "queued"

    @property
    def spec(self) -> ToolSpec:
        return self.definition.spec

    @property
    def changes_nothing(self) -> bool:
        """Return ``False``: nothing declares what functions do, and commands are judged by their text."""
        return False

    def summary(self, arguments: JsonObject) -> str | None:
        """Return the description; a text for the single call is part of the permission request."""
        return self.definition.description or None

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        return await self._call(ctx, call).prepare()

    async def cancelled(self, ctx: ToolContext, call: ToolUseBlock, outcome: ToolOutcome) -> ToolOutcome:
        return await self._call(ctx, call).cancelled(outcome)

    def _call(self, ctx: ToolContext, call: ToolUseBlock) -> Call:
        return Call(self.definition, call, ctx, self.services, always_ask=self.always_ask)


class DeclaredTools:
    """The source of the declared tools that are enabled and, if they require it, named."""

    def __init__(
        self,
        catalogue: ToolCatalogue,
        resolver: EnvResolver,
        always: Collection[str],
        session: Session,
        sandbox: SessionSandbox | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._always = always
        self._session = session
        self._services = Services(
            session.id, Commands(sandbox), resolver, session.services.secrets, flags={}, adapter=None
        )
        # By name: the function ``enabled`` at its last call, the time of the call, and the result.
        self._enabled: dict[str, tuple[Handler, float, bool]] = {}
        self._prompts: dict[str, str] = {}
        self._mentioned_now: frozenset[str] = frozenset()

    def tools(self) -> Mapping[str, DeclaredTool]:
        known = self._catalogue.known(self._session.settings.cwd)
        named = self._named(known)
        found = [entry for entry in known.values() if entry.tool is not None]
        found += [one for name in named if name not in known and (one := self._catalogue.package(name)) is not None]
        return {
            entry.tool.name: DeclaredTool(entry.tool, self._services, entry.origin == "client")
            for entry in found
            if entry.tool is not None and self._is_offered(entry.tool, named)
        }

    async def discover(self, names: Collection[str], mentioned: Collection[str]) -> None:
        """Read new and changed declarations, and packages if one of ``names`` is not found elsewhere.

        ``mentioned`` are the names in the prompt that is about to be sent.
        """
        self._mentioned_now = frozenset(mentioned)
        cwd = self._session.settings.cwd
        await self._catalogue.refresh(cwd)
        known = self._catalogue.known(cwd)
        members = (name for entry in known.values() if entry.group is not None for name in entry.group.tools)
        if not self._catalogue.has_searched_packages and not known.keys() >= {*names, *self._always, *members}:
            await self._catalogue.find_packages()
        self._services.adapter = (self._session.settings.options.model or "").partition("/")[0] or None
        tools = [entry.tool for entry in self._all(known) if entry.tool is not None]
        for tool in tools:
            if callable(tool.enabled):
                await self._update_enabled(tool, tool.enabled)
        for owner in (*tools, *(entry.group for entry in known.values() if entry.group is not None)):
            if callable(owner.system_prompt):
                await self._update_prompt(owner, owner.system_prompt)

    def instructions(self, offered: Collection[str]) -> list[str]:
        tools = [tool for name, tool in self.tools().items() if name in offered]
        owners: list[Definition | Group] = [*self._groups_in_use(offered), *(tool.definition for tool in tools)]
        return [text for owner in owners if (text := self._prompt_of(owner))]

    def omitted_sections(self, offered: Collection[str]) -> Collection[str]:
        return {section for group in self._groups_in_use(offered) for section in group.omitted_sections}

    def _groups_in_use(self, offered: Collection[str]) -> list[Group]:
        """Return the groups that were named and have tools among those ``offered``."""
        known = self._catalogue.known(self._session.settings.cwd)
        return [
            group
            for group in self._groups(known, self._requested_names())
            if any(name in offered or name.startswith("mcp:") for name in self.members(group.name) or ())
        ]

    def members(self, name: str) -> Collection[str] | None:
        if self._group(name) is None:
            return None
        known = self._catalogue.known(self._session.settings.cwd)
        groups = self._groups(known, {name})
        inner = {group.name for group in groups}
        return tuple(dict.fromkeys(tool for group in groups for tool in group.tools if tool not in inner))

    def mention_text(self, name: str, members: list[str]) -> str | None:
        group = self._group(name)
        return None if group is None else group.mention_text(members)

    def _group(self, name: str) -> Group | None:
        one = self._catalogue.known(self._session.settings.cwd).get(name) or self._catalogue.package(name)
        return None if one is None else one.group

    async def close(self, grace_s: float) -> None:
        await self._services.commands.close(grace_s)

    # --- selection-------------------------------------------------------------------------------------------------

    def _all(self, known: Mapping[str, ToolEntry]) -> Iterator[ToolEntry]:
        yield from known.values()
        for name in self._named(known) - known.keys():
            if (one := self._catalogue.package(name)) is not None:
                yield one

    def _requested_names(self) -> set[str]:
        """Return the tools and groups named by the user, the client, its agent or the configuration."""
        named = (name.removeprefix("custom:") for name in self._session.settings.named_tools())
        return {*named, *self._always, *self._session.history.mentions, *self._mentioned_now}

    def _named(self, known: Mapping[str, ToolEntry]) -> set[str]:
        """Return the tools that were named, directly or by a group."""
        names = self._requested_names()
        return names | {member for group in self._groups(known, names) for member in group.tools}

    def _groups(self, known: Mapping[str, ToolEntry], names: Collection[str]) -> list[Group]:
        """Return the groups among ``names``, and the groups in them."""
        found: dict[str, Group] = {}
        rest = sorted(names)
        for name in rest:
            entry = known.get(name) or self._catalogue.package(name)
            if entry is not None and entry.group is not None and name not in found:
                found[name] = entry.group
                rest += entry.group.tools
        return list(found.values())

    def _is_offered(self, tool: Definition, named: Collection[str]) -> bool:
        return (not tool.opts.on_mention or tool.name in named) and self._is_enabled(tool)

    def _is_enabled(self, tool: Definition) -> bool:
        if isinstance(tool.enabled, bool):
            return tool.enabled
        kept = self._enabled.get(tool.name)
        return kept is not None and kept[2]

    # --- functions------------------------------------------------------------------------------------------------

    async def _update_enabled(self, tool: Definition, function: Handler) -> None:
        kept = self._enabled.get(tool.name)
        if kept is not None and kept[0] is function and monotonic() - kept[1] < KEEP_ENABLED_S:
            return
        answer = await self._call_function(tool.name, "enabled", function, {0: (), 1: ("opts",)})
        self._enabled[tool.name] = (function, monotonic(), bool(answer))

    async def _update_prompt(self, owner: Definition | Group, function: Handler) -> None:
        schema: Any = None
        if isinstance(owner, Definition):
            schema = owner.schema if owner.schema is not None else schema_of(owner)
        orders = {0: (), 1: ("schema",) if isinstance(owner, Definition) else ("group",), 2: ("group", "opts")}
        answer = await self._call_function(
            owner.name, "system_prompt", function, orders, schema=schema, group=owner
        )
        if isinstance(answer, str):
            self._prompts[owner.name] = as_text(answer)
        else:
            self._prompts.pop(owner.name, None)

    async def _call_function(
        self, name: str, kind: str, function: Handler, orders: Mapping[int, tuple[str, ...]], **more: Any
    ) -> Any:
        """Return the result of a function, ``None`` if it fails; the failure is logged."""
        about = {"adapter": self._services.adapter, "cwd": str(self._session.settings.cwd)}
        try:
            bound = bind(function, {**about, "opts": about, **more}, orders)
            return await call(f"tool {name!r}: {kind}", bound, ANSWER_WITHIN_S)
        except HandlerError:
            return None

    def _prompt_of(self, owner: Definition | Group) -> str | None:
        prompt = owner.system_prompt
        return prompt if prompt is None or isinstance(prompt, str) else self._prompts.get(owner.name)
