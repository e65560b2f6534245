"""Everything that the tools of all sessions share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.sandbox.session import Sandboxes
from jumpseat.system.descendants import Descendants
from jumpseat.tools.filters import SCRIPTS, Configured, Filter, set_of
from jumpseat.tools.tool import BuiltinTool, SourceMaker
from jumpseat.tools.web import Web
from jumpseat.tools.workspace_files import FileEdit

if TYPE_CHECKING:
    from jumpseat.tools.findings import Checker

CALLS_PER_ANSWER: Final = 128
"""Default limit of the tool calls of one answer that run."""


RecordChanges: TypeAlias = Callable[[Session, Prompt, Sequence[FileEdit], str | None], None]
"""Keeps the changes of files by a session while it ran a prompt."""


CheckerMaker: TypeAlias = Callable[[Session], "Checker"]
"""Makes a checker of the changes that a session's tools make; called at the first change."""


class RepeatLimits(Struct, frozen=True):
    """From which call of a row on the model gets a hint, and before which one the user is asked; 0: never.

    ``exempt`` are names or patterns (``mcp:*``) of further tools that wait for something.
    """

    hint: int = 3
    question: int = 5
    exempt: frozenset[str] = frozenset()


class ScriptSettings(Struct, frozen=True):
    """The sessions that have the tool for scripts.

    With ``by_default``, it is in the default set of tools, too. With ``unconfined``, scripts also run without a
    sandbox: each is then asked about like a command.
    """

    by_default: bool = False
    unconfined: bool = False


class Environment(Struct, frozen=True):
    """Shared by the tools of all sessions.

    ``builtin`` returns the built-in tools that are the same in all sessions, ``environ`` the environment of
    child processes, ``sources`` make the other tools of a session, ``web`` is what the web tools use. A client has
    ``client_tool_s`` seconds to answer a tool call, unlimited if ``None``. ``sandboxes`` confine commands,
    ``descendants`` ends what they leave behind. Of one answer of a model, at most ``calls_per_answer`` tool calls
    run, and ``repeats`` limits how often the same one does. ``record_changes`` keeps what file tools and commands
    change, ``checkers`` look for problems in what file tools have changed: those that know most come last.
    ``reserved`` are the names of all built-in tools, whether a session has them or not.
    ``tool_set`` is for sessions whose clients choose no tools, and ``scripts`` for the tool that runs them.
    """

    builtin: Callable[[], Sequence[BuiltinTool[Any]]]
    environ: Callable[[], dict[str, str]]
    sources: tuple[SourceMaker, ...] = ()
    web: Web | None = None
    client_tool_s: float | None = None
    sandboxes: Sandboxes | None = None
    calls_per_answer: int = CALLS_PER_ANSWER
    repeats: RepeatLimits = RepeatLimits()
    descendants: Descendants | None = None
    record_changes: RecordChanges | None = None
    checkers: tuple[CheckerMaker, ...] = ()
    reserved: frozenset[str] = frozenset()
    tool_set: Configured = None
    scripts: ScriptSettings = ScriptSettings()
    # The built-in tools by the needs that sessions meet, made at the first use: all sessions share them.
    _available: dict[tuple[bool, bool], Mapping[str, BuiltinTool[Any]]] = field(
        default_factory=dict[tuple[bool, bool], Mapping[str, BuiltinTool[Any]]]
    )

    def __post_init__(self) -> None:
        # A changed copy has tools of its own.
        force_setattr(self, "_available", {})

    def child_environ(self, session_id: str) -> dict[str, str]:
        """Return the environment of a child process of a session."""
        environ = self.environ()
        return environ if self.descendants is None else self.descendants.marked(environ, session_id)

    def builtin_tools(self, *, can_ask: bool = True, scripts: bool = True) -> Mapping[str, BuiltinTool[Any]]:
        """Return the built-in tools that this server can offer, by name.

        Those that ask users are left out unless ``can_ask``, that for scripts without ``scripts``.
        """
        found = self._available.get((can_ask, scripts))
        if found is None:
            found = self._available[can_ask, scripts] = {
                tool.name: tool for tool in self.builtin() if self._meets(tool.needs, can_ask, scripts)
            }
        return found

    def _meets(self, need: str | None, can_ask: bool, scripts: bool) -> bool:
        match need:
            case "user_input":
                return can_ask
            case "scripts":
                return scripts
            case "web":
                return self.web is not None
            case "web_search":
                return self.web is not None and self.web.can_search()
            case _:
                return True


class BuiltinTools:
    """Offers those built-in tools of the server whose needs the clients of ``session`` meet."""

    __slots__ = ("_environment", "_session")

    def __init__(self, session: Session, environment: Environment) -> None:
        self._session = session
        self._environment = environment

    def tools(self) -> Mapping[str, BuiltinTool[Any]]:
        disabled = self._session.settings.options.ask_user_disabled
        can_ask = not disabled and self._session.clients.user_input_client() is not None
        return self._environment.builtin_tools(can_ask=can_ask, scripts=self._runs_scripts())

    def _runs_scripts(self) -> bool:
        if not self._wants_scripts():
            return False
        environment = self._environment
        return environment.scripts.unconfined or (
            environment.sandboxes is not None and environment.sandboxes.can_close_off
        )

    def _wants_scripts(self) -> bool:
        """Return whether scripts belong to the tools of the session, on this platform."""
        settings, configured = self._session.settings, self._environment.tool_set
        chosen = set_of(settings, configured)
        wanted = chosen == "all" or (chosen == "default" and self._environment.scripts.by_default)
        # Last, because finding out whether a sandbox works takes as long as twenty turns.
        return (
            wanted
            and sys.platform != "win32"
            and Filter(settings, configured=configured).offers(SCRIPTS, "builtin")
        )

    async def ready(self) -> None:
        """Find out whether scripts can be confined, if the session wants them."""
        if self._wants_scripts() and self._environment.sandboxes is not None:
            await self._environment.sandboxes.probe()

    async def close(self, grace_s: float) -> None:
        """Do nothing: running commands belong to the session's shells."""
