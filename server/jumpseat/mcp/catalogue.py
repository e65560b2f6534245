"""The MCP servers of a session, and their sources.

Of servers with the same name, the session's own has precedence, then the project's, the user's (``config.toml``
before ``mcp-config.json``), and those of plugins. An invalid file or entry affects its servers only: each invalid
entry is listed with its problem.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import orjson
from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import ValidationError

from jumpseat.agent.agent_files import AgentFile
from jumpseat.agent.skills import Plugin
from jumpseat.errors import InvalidRequestError
from jumpseat.parsing.validation import in_file, validation_problems
from jumpseat.system.regular_files import read_whole, repository_root
from jumpseat_protocol.mcp import McpSource
from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.members import members_of, nearest
from jumpseat_protocol.sessions import AgentSource, GitHubMcpToolConfig

log = logging.getLogger(__name__)

PROJECT_FILES: Final = (".mcp.json", ".github/mcp.json")
MAX_FILE_BYTES: Final = 1024 * 1024

MOST_SERVERS: Final = 100
"""Servers of one file that are started."""

_KEY: Final = re.compile(r"[\w.\[\]-]+: ")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^}$]|\$(?!\{))*))?\}")


class ServerEntry(Struct, frozen=True):
    """A server and its source.

    ``config`` is ``None`` if ``problem`` says why the server cannot be used. ``literal`` values come from a client:
    ``${NAME}`` is not replaced in them. ``source`` is ``None`` for the session's own servers. ``variables`` can be
    used in addition to the environment. ``github`` is set for GitHub's own server, see ``github.py``.
    """

    name: str
    config: McpServerConfig | None
    source: McpSource | None = None
    literal: bool = False
    enabled: bool = True
    plugin: str | None = None
    problem: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    github: GitHubMcpToolConfig | None = None


_SOURCES: Final[Mapping[AgentSource, McpSource]] = {
    "user": "user",
    "project": "workspace",
    "inherited": "workspace",
    "plugin": "plugin",
}


def check_servers(servers: Mapping[str, Any]) -> dict[str, McpServerConfig]:
    """Validate the servers that a client sends.

    Raises:
        InvalidRequestError: a server is invalid; the text names the server and the field.
    """
    return {name: check_server(name, raw) for name, raw in servers.items()}


def check_server(name: str, raw: Any) -> McpServerConfig:
    """Validate one server.

    Raises:
        InvalidRequestError: as in :func:`check_servers`.
    """
    problem = _name_problem(name)
    if problem is None:
        try:
            return McpServerConfig.model_validate(raw)
        except ValidationError as error:
            problem = "; ".join(_problems(error, raw))
    raise InvalidRequestError(f"mcpServers.{name[:100]}: {problem}")


def find_servers(
    own: Mapping[str, McpServerConfig],
    *,
    incomplete: Mapping[str, str] | None = None,
    agent: AgentFile | None = None,
    user: Mapping[str, Any],
    user_file: Mapping[str, Any],
    home: Path | None = None,
    disabled: frozenset[str],
    disabled_here: frozenset[str] = frozenset(),
    project: Path | None,
    plugins: Sequence[Plugin] = (),
    github: ServerEntry | None = None,
) -> dict[str, ServerEntry]:
    """Return all servers of a session by name, in the order of precedence.

    ``own`` are the session's own servers; ``incomplete`` are those that a resumed session cannot start, with the
    names of the values that were not stored. ``agent`` is a custom agent in a file, which may define servers.
    ``user`` are the servers of ``config.toml``, ``user_file`` those of ``mcp-config.json``, both in ``home``; of
    the latter, those in ``disabled`` are disabled for all sessions. ``disabled_here`` are disabled for this
    session, from any source. ``github`` is GitHub's own server. ``project`` is the working directory, ``None``
    where its files are not read.
    """
    found: dict[str, ServerEntry] = {name: ServerEntry(name, config, literal=True) for name, config in own.items()}
    for name, missing in (incomplete or {}).items():
        problem = f"{missing} is not stored, as it may be secret: give mcpServers again when the session is resumed"
        found.setdefault(name, ServerEntry(name, None, literal=True, problem=problem))

    def add(entries: Iterator[ServerEntry]) -> None:
        for entry in entries:
            found.setdefault(entry.name, entry)

    if agent is not None:
        # A folder that the client names is like one of the user.
        add(_entries(agent.mcp_servers or {}, "user" if agent.source is None else _SOURCES[agent.source]))
    if project is not None:
        for file in PROJECT_FILES:
            table, servers = _servers_of(project / file, repository_root(project))
            add(_entries(servers, "workspace", place=_Table(project / file, table)))
    configured = None if home is None else _Table(home / "config.toml", "mcp.servers")
    added = None if home is None else _Table(home / "mcp-config.json", "mcpServers")
    add(_entries(user, "user", place=configured))
    add(_entries(user_file, "user", place=added, enabled=lambda name: name not in disabled))
    for plugin in plugins:
        add(servers_of_plugin(plugin))
    if github is not None:
        add(iter([replace(github, enabled=github.enabled and github.name not in disabled)]))
    return {
        name: replace(entry, enabled=False)
        if name in disabled_here or (entry.config is not None and entry.config.disabled)
        else entry
        for name, entry in found.items()
    }


def servers_of_plugin(plugin: Plugin) -> Iterator[ServerEntry]:
    """Yield the servers of a plugin; none of an untrusted plugin can be started."""
    variables = {"CLAUDE_PLUGIN_ROOT": str(plugin.folder), "PLUGIN_ROOT": str(plugin.folder)}
    tables = [(path, *_servers_of(path)) for path in plugin.mcp_files]
    found = [
        *(
            entry
            for path, table, servers in tables
            for entry in _entries(
                servers, "plugin", place=_Table(path, table), plugin=plugin.name, variables=variables
            )
        ),
        *_entries(plugin.mcp_servers, "plugin", plugin=plugin.name, variables=variables),
    ]
    for entry in found:
        yield entry if plugin.untrusted is None else replace(entry, config=None, problem=plugin.untrusted)


class _Table(NamedTuple):
    """The place of servers: a file, and the name of the table in it."""

    file: Path
    name: str


def _entries(
    raw: Mapping[str, Any],
    source: McpSource,
    *,
    place: _Table | None = None,
    plugin: str | None = None,
    variables: Mapping[str, str] | None = None,
    enabled: Callable[[str], bool] = lambda _name: True,
) -> Iterator[ServerEntry]:
    if len(raw) > MOST_SERVERS:
        where = place.file if place is not None else plugin or source
        log.warning("only %d of %d MCP servers in %s are used", MOST_SERVERS, len(raw), where)
    for name, value in islice(raw.items(), MOST_SERVERS):
        config, problem = None, _name_problem(name)
        if problem is None:
            try:
                config = value if isinstance(value, McpServerConfig) else McpServerConfig.model_validate(value)
            except ValidationError as error:
                problems = _problems(error, value, "" if place else "server")
                problem = "; ".join(problems)
                if place is not None:
                    table = f"{place.name}.{name}"
                    # A problem of the server as a whole has no key.
                    problems = [f"{table}{'.' if _KEY.match(text) else ': '}{text}" for text in problems]
                    problem = in_file(place.file, problems)
        yield ServerEntry(
            name,
            config,
            source,
            enabled=enabled(name) and not (isinstance(value, dict) and cast("Any", value).get("disabled") is True),
            plugin=plugin,
            problem=problem,
            variables=variables or {},
        )


def _servers_of(path: Path, within: Path | None = None) -> tuple[str, dict[str, Any]]:
    """Return the object under ``mcpServers`` (or ``servers``) of a JSON file, and that name; empty if it has none.

    Links of the file must not lead out of the folder ``within``.
    """
    try:
        whole = orjson.loads(read_whole(path, MAX_FILE_BYTES, within))
    except FileNotFoundError:
        return "", {}
    except (OSError, ValueError) as error:
        log.warning("cannot read the MCP servers in %s: %s", path, error)
        return "", {}
    record = cast("dict[str, Any]", whole) if isinstance(whole, dict) else {}
    name = "mcpServers" if "mcpServers" in record else "servers"
    servers = record.get(name)
    return name, cast("dict[str, Any]", servers) if isinstance(servers, dict) else {}


MOST_COMPARED: Final = 50
"""The unknown members of a server that are compared with all known ones."""


def _name_problem(name: str) -> str | None:
    if not name.strip() or len(name) > 200 or not name.isprintable():
        return "expected a name of 1 to 200 printable characters"
    return None


def _problems(error: ValidationError, raw: Any, whole: str = "server") -> list[str]:
    """Return the problems of a server; misspelled members, which are kept otherwise, come first.

    ``whole`` is the path of a problem with the server as a whole.
    """
    problems = validation_problems(error, McpServerConfig, whole)
    if not isinstance(raw, dict):
        return problems
    known = members_of((McpServerConfig,)).shown
    names = sorted(cast("dict[str, Any]", raw).keys() - set(known))
    found = ((name, nearest(name, known, cutoff=0.75)) for name in names[:MOST_COMPARED])
    return [f"{name}: unknown, did you mean {meant!r}?" for name, meant in found if meant is not None] + problems


class MissingVariableError(Exception):
    """The settings of a server refer to a variable that is not set."""


def resolve_config(
    entry: ServerEntry, config: McpServerConfig, environ: Mapping[str, str], *, indirect: bool = False
) -> McpServerConfig:
    """Return ``config`` with ``${NAME}`` replaced by the values of variables, for one start of the server.

    With ``indirect``, the values in the ``env`` of a literal entry are names of variables.

    Raises:
        MissingVariableError: a variable is not set.
    """
    known = {**environ, **entry.variables}

    def value(text: str) -> str:
        def substitute(match: re.Match[str]) -> str:
            name, default = str(match.group(1)), cast("str | None", match.group(2))
            if name not in known and default is None:
                raise MissingVariableError(f"the environment variable {name} is not set")
            return known.get(name) or default or ""

        return text if entry.literal else _VARIABLE.sub(substitute, text)

    def variable(text: str) -> str:
        if not (indirect and entry.literal):
            return value(text)
        if text not in known:
            raise MissingVariableError(f"the environment variable {text} is not set")
        return known[text]

    changes: dict[str, Any] = {
        "command": value(config.command) if config.command else None,
        "args": [value(argument) for argument in config.args or []],
        "env": {name: variable(text) for name, text in (config.env or {}).items()},
        "cwd": value(config.cwd) if config.cwd else None,
        "url": value(config.url) if config.url else None,
        "headers": {name: value(text) for name, text in (config.headers or {}).items()},
    }
    return config.model_copy(update=changes)
