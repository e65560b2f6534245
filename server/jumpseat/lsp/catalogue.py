"""The language servers of a session, and their sources.

Of servers with the same name, that of the project has precedence, then the user's (``config.toml`` before
``lsp-config.json``), and those of plugins; then come well-known servers that are installed. Of servers for the same
extension, the first one is used. The JSON files have the form of the vendor's CLI, see
https://docs.github.com/en/copilot/how-tos/copilot-cli/set-up-copilot-cli/add-lsp-servers
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import orjson
from msgspec import Struct
from pydantic import ValidationError

from jumpseat.agent.skills import Plugin
from jumpseat.config import LanguageServerConfig
from jumpseat.lsp.process import TEMP
from jumpseat.parsing.validation import in_file, validation_problems
from jumpseat.system.regular_files import read_whole, repository_root

log = logging.getLogger(__name__)

USER_FILE: Final = "lsp-config.json"
PROJECT_FILES: Final = (".github/lsp.json", "lsp.json")
SERVERS: Final = "lspServers"
MAX_FILE_BYTES: Final = 1024 * 1024

_MEMBERS: Final = {
    "command": "command",
    "args": "args",
    "env": "env",
    "fileExtensions": "extensions",
    "extensionToLanguage": "extensions",
    "initializationOptions": "initialization_options",
    "settings": "settings",
    "rootUri": "root",
    "disabled": "disabled",
}
"""Members of a server in JSON, and their names in ``config.toml``. Others are ignored."""

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*+))?\}")

_PYTHON: Final = {".py": "python", ".pyi": "python"}
_SCRIPTS: Final = {
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    ".tsx": "typescriptreact",
    ".jsx": "javascriptreact",
}
_C: Final = {
    ".c": "c",
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"), "cpp"),
}
# By default, only open files are checked; others break as well.
_WHOLE_PROJECT: Final = {"analysis": {"diagnosticMode": "workspace"}}

DEFAULTS: Final[Mapping[str, LanguageServerConfig]] = {
    "basedpyright": LanguageServerConfig.model_construct(
        command="basedpyright-langserver",
        args=["--stdio"],
        extensions=_PYTHON,
        settings={"basedpyright": _WHOLE_PROJECT},
    ),
    "pyright": LanguageServerConfig.model_construct(
        command="pyright-langserver",
        args=["--stdio"],
        extensions=_PYTHON,
        settings={"python": _WHOLE_PROJECT},
    ),
    "typescript-language-server": LanguageServerConfig.model_construct(
        command="typescript-language-server",
        args=["--stdio"],
        extensions=_SCRIPTS,
        # A second server, which knows single files only, would answer while the project is loaded.
        initialization_options={"tsserver": {"useSyntaxServer": "never"}},
    ),
    "gopls": LanguageServerConfig.model_construct(
        command="gopls",
        extensions={".go": "go"},
        # Errors in other packages come after this delay, which is a second by default.
        settings={"gopls": {"diagnosticsDelay": "100ms"}},
    ),
    "rust-analyzer": LanguageServerConfig.model_construct(
        command="rust-analyzer",
        extensions={".rs": "rust"},
        # Unknown names and wrong types are errors that it would leave to a build, which takes long.
        initialization_options={"diagnostics": {"experimental": {"enable": True}}},
    ),
    "clangd": LanguageServerConfig.model_construct(
        # Its index would be written into the project.
        command="clangd",
        args=["--background-index=false", "--use-dirty-headers"],
        extensions=_C,
    ),
    "jdtls": LanguageServerConfig.model_construct(
        # Two of them cannot share a workspace.
        command="jdtls",
        args=["-nosplash", "-configuration", f"{TEMP}/configuration", "-data", f"{TEMP}/data"],
        extensions={".java": "java"},
    ),
}


class LanguageServer(Struct, frozen=True):
    """A server of a session; ``program`` is the absolute path of its command.

    ``is_default``: no configuration names it. ``trusted``: it may run where nothing confines it.
    """

    name: str
    program: str
    config: LanguageServerConfig
    env: Mapping[str, str]
    is_default: bool = False


class Sources(Struct, frozen=True):
    """The sources of configured servers: ``configured`` are those of ``config.toml`` in the folder ``home``.

    ``project`` is the working directory, ``None`` if its files may configure nothing. ``find`` returns the path of
    a program that can be relied on, and ``environ`` has the variables of child processes.
    """

    configured: Mapping[str, LanguageServerConfig]
    home: Path
    project: Path | None
    plugins: Sequence[Plugin]
    find: Callable[[str], str | None]
    environ: Mapping[str, str]
    defaults: bool = True


class Found(Struct, frozen=True):
    """The servers of a session in their order, and what is wrong with others."""

    servers: tuple[LanguageServer, ...] = ()
    problems: tuple[str, ...] = ()

    def of(self, path: Path) -> LanguageServer | None:
        """Return the server for a file; ``None`` if there is none."""
        suffix = path.suffix.lower()
        return next((server for server in self.servers if suffix in server.config.extensions), None)


def find_servers(sources: Sources) -> Found:
    """Return the servers of a session. Blocks on the file system."""
    problems: list[str] = []
    entries: dict[str, tuple[LanguageServerConfig, Mapping[str, str]]] = {}
    for name, config, variables in _entries(sources, problems):
        known = DEFAULTS.get(name)
        entries.setdefault(name, (config if known is None else _merged(known, config), variables))
    servers: list[LanguageServer] = []
    for name, (config, variables) in entries.items():
        if config.disabled:
            continue
        problem, server = _server(name, config, sources, variables)
        if server is not None:
            servers.append(server)
        if problem is not None:
            problems.append(problem)
    if sources.defaults:
        for name, config in DEFAULTS.items():
            program = None if name in entries else sources.find(config.command or "")
            if program is not None:
                servers.append(LanguageServer(name, program, config, {}, is_default=True))
    return Found(tuple(servers), tuple(problems))


def _entries(
    sources: Sources, problems: list[str]
) -> Iterator[tuple[str, LanguageServerConfig, Mapping[str, str]]]:
    """Yield the configured servers by precedence, each with its own variables."""
    environ = sources.environ
    if sources.project is not None:
        root = repository_root(sources.project)
        for file in PROJECT_FILES:
            yield from ((name, config, environ) for name, config in _in_file(root / file, root, problems))
    yield from ((name, config, environ) for name, config in sources.configured.items())
    yield from ((name, config, environ) for name, config in _in_file(sources.home / USER_FILE, None, problems))
    for plugin in sources.plugins:
        if plugin.untrusted is None:
            variables = {**environ, "CLAUDE_PLUGIN_ROOT": str(plugin.folder), "PLUGIN_ROOT": str(plugin.folder)}
            yield from ((name, config, variables) for name, config in servers_of_plugin(plugin, problems))


def servers_of_plugin(plugin: Plugin, problems: list[str]) -> Iterator[tuple[str, LanguageServerConfig]]:
    """Yield the servers that a plugin configures, whether the user trusts it or not; add to ``problems``."""
    for path in plugin.lsp_files:
        yield from _in_file(path, plugin.folder, problems)
    yield from _valid(plugin.lsp_servers, f"plugin {plugin.name}", problems)


def _in_file(path: Path, within: Path | None, problems: list[str]) -> Iterator[tuple[str, LanguageServerConfig]]:
    """Yield the servers in a JSON file; links of the file must not lead out of the folder ``within``."""
    try:
        whole: Any = orjson.loads(read_whole(path, MAX_FILE_BYTES, within))
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        problems.append(f"{path}: cannot be read: {error}")
        return
    record = cast("dict[str, Any]", whole) if isinstance(whole, dict) else {}
    # Files of other agents have the servers at the top level.
    yield from _valid(record.get(SERVERS, record), path, problems)


def _valid(servers: Any, place: Path | str, problems: list[str]) -> Iterator[tuple[str, LanguageServerConfig]]:
    for name, raw in cast("dict[str, Any]", servers if isinstance(servers, dict) else {}).items():
        if not isinstance(raw, dict):
            continue
        given = cast("dict[str, Any]", raw)
        members = {ours: given[theirs] for theirs, ours in _MEMBERS.items() if given.get(theirs) is not None}
        if isinstance(limit := given.get("requestTimeoutMs"), int | float):
            members["timeout_s"] = limit / 1000
        try:
            yield name, LanguageServerConfig.model_validate(members)
        except ValidationError as error:
            texts = [f"{SERVERS}.{name}.{text}" for text in validation_problems(error, LanguageServerConfig, "")]
            problems.append(in_file(place, texts) if isinstance(place, Path) else f"{place}: {'; '.join(texts)}")


def _merged(default: LanguageServerConfig, config: LanguageServerConfig) -> LanguageServerConfig:
    """Return a well-known server with the settings that the configuration changes."""
    given = {name: getattr(config, name) for name in config.model_fields_set}
    return default.model_copy(update=given)


def _server(
    name: str, config: LanguageServerConfig, sources: Sources, variables: Mapping[str, str]
) -> tuple[str | None, LanguageServer | None]:
    """Return a server that can be started, or the reason why it cannot."""
    command = _filled_in(config.command or "", variables)
    if not command or not config.extensions:
        return f"language server {name!r}: expected a command and the extensions of its files", None
    if os.sep in command and not os.path.isabs(command):
        return (
            f"language server {name!r}: expected the name of a program or an absolute path, got {command!r}",
            None,
        )
    program = command if os.path.isabs(command) else sources.find(command)
    if program is None or not os.access(program, os.X_OK):
        return f"language server {name!r}: program {command!r} not found", None
    extensions = {_suffix(extension): language for extension, language in config.extensions.items()}
    args = [_filled_in(argument, variables) for argument in config.args]
    env = {key: _filled_in(value, variables) for key, value in config.env.items()}
    return None, LanguageServer(
        name, program, config.model_copy(update={"extensions": extensions, "args": args}), env
    )


def _suffix(extension: str) -> str:
    return f".{extension.lstrip('.').lower()}"


def _filled_in(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``${NAME}`` and ``${NAME:-default}`` by the values of variables."""
    return _VARIABLE.sub(lambda found: variables.get(found[1]) or found[2] or "", text)
