"""Hook files: ``hooks/*.json`` of the user, ``.github/hooks/*.json`` of a project, those of folders that a client
names, and those of plugins.

Format: https://docs.github.com/en/copilot/reference/hooks-reference. A file with an invalid structure is ignored as
a whole, an invalid hook alone; both are reported. Files of a project count if its folder is trusted, those of an
installed plugin if the user has agreed to what it runs.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import orjson

from jumpseat.agent.session.hooks import COMMAND_TIMEOUT_S, FoundHooks, HookCommand, HookSource
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.skills import Plugin, Plugins
from jumpseat.system.regular_files import read_whole, repository_root, scan_folder

log = logging.getLogger(__name__)

PROJECT_FOLDER: Final = Path(".github", "hooks")
LARGEST_BYTES: Final = 256 * 1024
MOST_FILES: Final = 64
"""Limit on the files of one folder."""
MOST_HOOKS: Final = 200
"""Limit on the hooks of one file."""
LONGEST_S: Final = 600.0
"""The longest time limit of a command."""

HOOK_TYPES: Final = frozenset(
    {
        *("sessionStart", "sessionEnd", "userPromptSubmitted", "userPromptTransformed", "preToolUse"),
        *(
            "permissionRequest",
            "postToolUse",
            "postToolUseFailure",
            "agentStop",
            "errorOccurred",
            "subagentStart",
            "subagentStop",
        ),
    }
)
_PASCAL_CASE: Final[Mapping[str, str]] = {
    **{hook_type[0].upper() + hook_type[1:]: hook_type for hook_type in HOOK_TYPES},
    "UserPromptSubmit": "userPromptSubmitted",
    "Stop": "agentStop",
}
"""The names that other agents use, with those on the wire."""

_SHELL, _COMMAND_OPTION = ("powershell", "-Command") if os.name == "nt" else ("bash", "-c")
_SYSTEM: Final = {"win32": "windows", "darwin": "osx"}.get(sys.platform, "linux")
"""The name that VS Code has for this system."""


class HookGroup(NamedTuple):
    """The hooks of one place, and the reason why they do not run, if they do not."""

    commands: list[HookCommand]
    problem: str | None = None


class HookFiles:
    """The hook files of all sessions; those of the user are in ``home``."""

    def __init__(self, home: Path, plugins: Plugins, is_trusted: Callable[[Path], bool]) -> None:
        self._folder = home / "hooks"
        self._plugins = plugins
        self._is_trusted = is_trusted

    def may_exist(self, settings: SessionSettings) -> bool:
        """Return whether a session may have hook files; looks for folders, and reads nothing."""
        return bool(settings.options.hook_directories) or (
            settings.options.enable_file_hooks is not False
            and (
                os.path.isdir(self._folder)
                or bool(self._plugins.folders(settings))
                or any(os.path.isdir(folder / PROJECT_FOLDER) for folder in _projects(settings))
            )
        )

    def find(self, settings: SessionSettings, *, project: bool = True) -> FoundHooks:
        """Read the hook files of a session; without ``project``, those of its project are left out."""
        commands: list[HookCommand] = []
        problems: list[str] = []
        for group in self.groups(settings, problems, project=project):
            if group.problem is None:
                commands += group.commands
            else:
                problems.append(group.problem)
        return FoundHooks(commands, problems)

    def groups(
        self, settings: SessionSettings, problems: list[str], *, project: bool = True
    ) -> Iterator[HookGroup]:
        """Yield the hooks of each place that has any, and add what is wrong with the files to ``problems``.

        A client that switches hooks in files off keeps those of the folders that it names.
        """
        named = [
            command
            for folder in settings.options.hook_directories
            for path in _files(Path(folder))
            for command in _read(path, "client", problems)
        ]
        if named:
            yield HookGroup(named)
        if settings.options.enable_file_hooks is False:
            return
        of_user = [command for path in _files(self._folder) for command in _read(path, "user", problems)]
        if of_user:
            yield HookGroup(of_user)
        for folder in _projects(settings) if project else ():
            files = _files(folder / PROJECT_FOLDER)
            found = [command for path in files for command in _read(path, "project", problems, folder)]
            if found:
                yield HookGroup(found, None if self._is_trusted(folder) else _untrusted_text(folder, len(found)))
        for plugin in self._plugins.read_all(settings):
            if found := hooks_of_plugin(plugin, problems):
                reason = plugin.untrusted
                yield HookGroup(found, reason and f"The hooks of a plugin do not run: {reason}")


def _untrusted_text(folder: Path, count: int) -> str:
    return (
        f"The hooks in {folder / PROJECT_FOLDER} ({count}) do not run, because the folder is not trusted. See them"
        " with 'jumpseat hooks'. Trust the folder with session.permissions.folderTrust.addTrusted, or under"
        " trusted_folders in config.toml."
    )


def hooks_of_plugin(plugin: Plugin, problems: list[str]) -> list[HookCommand]:
    """Return the hooks of a plugin, whether it is trusted or not, and add what is wrong with its files."""
    found: list[HookCommand] = []
    for path in plugin.hook_files:
        if os.path.lexists(path):
            found += _read(path, "plugin", problems, plugin.folder, plugin.folder)
    if plugin.hooks:
        whole = {"hooks": plugin.hooks}
        found += _hooks_of_file(plugin.folder, whole, "plugin", problems, plugin.folder)
    return found


def _projects(settings: SessionSettings) -> tuple[Path, ...]:
    """Return the folders whose hook files a session may have: its repository, and its working directory."""
    wanted = (
        settings.options.enable_config_discovery
        if settings.options.enable_file_hooks is None
        else settings.options.enable_file_hooks
    )
    return tuple(dict.fromkeys((repository_root(settings.cwd), settings.cwd))) if wanted else ()


def _files(folder: Path) -> list[Path]:
    names = sorted(
        entry.name for entry in scan_folder(folder) if entry.name.endswith(".json") and not entry.is_folder
    )
    if len(names) > MOST_FILES:
        log.warning("hooks: only %d of %d files in %s are read", MOST_FILES, len(names), folder)
    return [folder / name for name in names[:MOST_FILES]]


def _read(
    path: Path, source: HookSource, problems: list[str], within: Path | None = None, plugin: Path | None = None
) -> list[HookCommand]:
    try:
        whole: Any = orjson.loads(read_whole(path, LARGEST_BYTES, within))
    except (OSError, ValueError) as error:
        reason = "not JSON" if isinstance(error, orjson.JSONDecodeError) else str(error)
        problems.append(f"The hooks in {path} are ignored: {reason}")
        return []
    return _hooks_of_file(path, whole, source, problems, plugin)


def _hooks_of_file(
    path: Path, whole: Any, source: HookSource, problems: list[str], plugin: Path | None
) -> list[HookCommand]:
    try:
        events = _events(whole)
    except ValueError as error:
        problems.append(f"The hooks in {path} are ignored: {error}")
        return []
    found: list[HookCommand] = []
    for name, entries in events.items():
        pascal_case = name in _PASCAL_CASE
        hook_type = _PASCAL_CASE.get(name, name)
        if hook_type not in HOOK_TYPES:
            problems.append(f"The hooks for {name!r} in {path} are ignored: there is no such hook here")
            continue
        for number, entry in enumerate(_flat(entries), 1):
            try:
                command = _command(entry, hook_type, source, path, plugin, pascal_case=pascal_case)
            except ValueError as error:
                problems.append(f"The hook {number} for {name} in {path} is ignored: {error}")
            else:
                found.append(command)
    if len(found) > MOST_HOOKS:
        problems.append(f"The hooks in {path} are ignored: {len(found)} hooks, expected at most {MOST_HOOKS}")
        return []
    return found


def _events(whole: Any) -> dict[str, list[Any]]:
    """Return the hooks of a file by event; none if the file says that they are disabled.

    Raises:
        ValueError: the structure is invalid.
    """
    if not isinstance(whole, dict):
        raise ValueError("expected an object")
    file = cast("dict[str, Any]", whole)
    if file.get("version", 1) != 1:
        raise ValueError("expected the version 1")
    events = file.get("hooks", {})
    if not isinstance(events, dict):
        raise ValueError("hooks: expected an object")
    for name, entries in cast("dict[str, Any]", events).items():
        if not isinstance(entries, list):
            raise ValueError(f"hooks.{name}: expected an array")
    return {} if file.get("disableAllHooks") is True else cast("dict[str, list[Any]]", events)


def _flat(entries: list[Any]) -> Iterator[Any]:
    """Yield the hooks of an event; other agents group them under a common ``matcher``."""
    for entry in entries:
        common = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        group = common.get("hooks")
        if not isinstance(group, list):
            yield entry
            continue
        matcher: dict[str, Any] = {"matcher": common["matcher"]} if "matcher" in common else {}
        for hook in cast("list[Any]", group):
            yield {**matcher, **cast("dict[str, Any]", hook)} if isinstance(hook, dict) else hook


def _command(
    entry: Any, hook_type: str, source: HookSource, file: Path, plugin: Path | None, *, pascal_case: bool
) -> HookCommand:
    """Convert one hook of a file.

    Raises:
        ValueError: the hook is invalid, or of a kind that does not exist here.
    """
    if not isinstance(entry, dict):
        raise ValueError("expected an object")
    values = cast("dict[str, Any]", entry)
    if values.get("type", "command") != "command":
        raise ValueError("only hooks of the type 'command' run here")
    argv, shown = _argv(values)
    env = values.get("env", {})
    if not isinstance(env, dict) or not all(
        isinstance(value, str) for value in cast("dict[str, Any]", env).values()
    ):
        raise ValueError("env: expected an object of strings")
    timeout_s = values.get("timeoutSec", values.get("timeout", COMMAND_TIMEOUT_S))
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= LONGEST_S:
        raise ValueError(f"timeoutSec: expected a number of seconds, at most {LONGEST_S:g}")
    return HookCommand(
        hook_type,
        source,
        file,
        argv,
        shown,
        pascal_case=pascal_case,
        matcher=_text(values, "matcher"),
        cwd=_text(values, "cwd"),
        env=cast("dict[str, str]", env),
        timeout_s=float(timeout_s),
        plugin=plugin,
    )


def _argv(values: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """Return the command line of a hook, and its text for people."""
    program = _text(values, "exec")
    shell = _SHELL
    text = _text(values, shell) or _text(values, _SYSTEM) or _text(values, "command")
    if program is not None:
        arguments = values.get("args", [])
        if text is not None:
            raise ValueError(f"expected either exec or {shell}")
        if not isinstance(arguments, list) or not all(
            isinstance(word, str) for word in cast("list[Any]", arguments)
        ):
            raise ValueError("args: expected an array of strings")
        argv = (program, *cast("list[str]", arguments))
        return argv, " ".join(argv)
    if text is None:
        raise ValueError(f"{shell}, command or exec is missing")
    return (shell, _COMMAND_OPTION, text), text


def _text(values: dict[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is not None and (not isinstance(value, str) or "\0" in value):
        raise ValueError(f"{name}: expected a string")
    return value or None
