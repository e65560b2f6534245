"""Resolve values that a declaration refers to but does not contain: keys, hosts, versions. For adapters and tools.

Each entry of ``env`` is one of the following; the first match applies:

1. ``"cmd:COMMAND"``: the output of a command, run by the system's shell;
2. ``"file:PATH"``: the content of a file or named pipe (``~`` and relative paths are allowed);
3. the name of an environment variable that is set, even if empty;
4. a function: its return value, awaited if it is asynchronous; it may take the adapter or tool as a parameter;
5. a dotted path into the adapter or tool (``schema.model.default``, ``args.file``);
6. the string itself.

A table takes more options: ``{value = "cmd:op read ...", optional = true, cache_s = 3600, timeout_s = 5}``. Without
``cache_s``, values are looked up again for every request. A string that looks like a variable name
(``OPENAI_API_KEY``) and matches none of the first five is treated as an unset variable rather than as a key;
``literal = true`` disables that, and ``variable = true`` treats any string as a variable name.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias, cast

import anyio
from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field

from jumpseat.declared.calling import HandlerError, bind, call, without_message
from jumpseat.declared.names import PLACEHOLDER
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import config_error
from jumpseat.system.process_groups import kill_group
from jumpseat_protocol.structs import Discreet

COMMAND_TIMEOUT_S: Final = 20.0

OUTPUT_LIMIT: Final = 1024 * 1024
"""The maximum size of a command's output and of a file, in bytes."""

PIPE_POLL_S: Final = 0.02
"""The interval at which a named pipe without a writer is polled."""

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
SECRET_NAME: Final = re.compile(r"auth|key|token|secret|password|cookie|signature", re.IGNORECASE)
"""Entries of ``env`` and headers whose name matches are secrets."""

VIEW_NAMES: Final = ("self", "adapter", "tool")
"""The names of the parameter of a function: the adapter or tool."""
_ONLY_VIEW: Final = {0: (), 1: (VIEW_NAMES[0],)}

Lookup: TypeAlias = Callable[[str], Any]
"""Resolves a dotted path in the adapter or tool; returns ``None`` if there is no value."""


class EnvEntry(BaseModel):
    """An entry of ``env``. Times are in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    value: Any
    optional: bool = False
    literal: bool = False
    variable: bool = False
    cache_s: float | None = Field(default=None, ge=0, allow_inf_nan=True)
    timeout_s: float = Field(default=COMMAND_TIMEOUT_S, gt=0)


class Missing(Struct, frozen=True):
    """The reason why an entry has no value. If ``optional``, anything that refers to it may be left out."""

    reason: str
    optional: bool = False


class MissingValueError(ConfigError):
    """A placeholder has no value; ``name`` is the name in the placeholder."""

    def __init__(self, owner: str, name: str, reason: str) -> None:
        super().__init__(f"{owner}: ${{{name}}} has no value: {reason}")
        self.name = name


class EnvValues(Discreet, Struct, frozen=True):
    """The resolved values of one adapter or tool for one request.

    ``secret`` holds the values that come from outside the declaration or have a secret name. ``owner`` names the
    adapter or tool in errors.
    """

    hidden = ("values", "secret")
    owner: str
    values: Mapping[str, Any]
    missing: Mapping[str, Missing] = field(default_factory=dict[str, Missing])
    secret: frozenset[str] = frozenset()

    def table(self) -> dict[str, Any]:
        """Return the values for functions: the use of a missing required one is an error that names it."""
        return _Values(self)

    def text(self, template: str) -> str | None:
        """Fill in the ``${name}`` placeholders of ``template``; return ``None`` if an optional one has no value.

        Raises:
            MissingValueError: a required value is missing, or a placeholder is not declared in ``env``.
        """
        if "${" not in template:
            return template
        absent = False

        def value(match: re.Match[str]) -> str:
            nonlocal absent
            name = match[1]
            if name in self.values:
                return _as_text(self.values[name])
            missing = self.missing.get(name)
            if missing is None:
                raise MissingValueError(self.owner, name, "it is not declared in env")
            if not missing.optional:
                raise MissingValueError(self.owner, name, missing.reason)
            absent = True
            return ""

        filled = PLACEHOLDER.sub(value, template)
        return None if absent else filled


class _Values(dict[str, Any]):
    """The values of ``env`` for functions."""

    def __init__(self, values: EnvValues) -> None:
        super().__init__(values.values)
        self._source = values

    def __missing__(self, name: str) -> Any:
        missing = self._source.missing.get(name)
        if missing is None or missing.optional:
            raise KeyError(name)
        raise MissingValueError(self._source.owner, name, missing.reason)


class EnvResolver:
    """Looks up the values of ``env`` entries. There is one per process, which caches entries with ``cache_s``."""

    def __init__(
        self,
        environ: Mapping[str, str],
        of_command: Callable[[str], Mapping[str, str]] | None = None,
        *,
        cwd: Path | None = None,
    ) -> None:
        """``of_command`` returns the environment of a command, by default ``environ``; ``cwd`` is its folder."""
        self._environ = environ
        self._of_command = of_command
        self._cwd = cwd
        self._cached: dict[tuple[str, str], tuple[float, Any, EnvEntry]] = {}
        self._entries: dict[tuple[str, str], tuple[Any, EnvEntry]] = {}
        self._lock = anyio.Lock()

    async def resolve(
        self,
        owner: str,
        env: Mapping[str, Any],
        lookup: Lookup,
        view: Any,
        given: Mapping[str, Any] | None = None,
    ) -> EnvValues:
        """Resolve all entries of ``env``. An entry without a value causes an error only when it is used.

        Args:
            owner: names the adapter or tool in errors.
            env: the entries by name.
            lookup: resolves dotted paths in the adapter or tool.
            view: the argument of functions.
            given: values that override the entries of the same name.
        """
        given = given or {}
        values = dict(given)
        missing: dict[str, Missing] = {}
        secret: set[str] = set(given)
        for name, raw in env.items():
            if name in given:
                continue
            entry = self._entry(owner, name, raw)
            found, outside = await self._value((owner, name), entry, lookup, view)
            if isinstance(found, Missing):
                missing[name] = Missing(found.reason, entry.optional)
                continue
            values[name] = found
            if outside or SECRET_NAME.search(name):
                secret.add(name)
        texts = frozenset(text for name in secret if (text := _as_text(values[name])))
        return EnvValues(owner, values, missing, texts)

    def _entry(self, owner: str, name: str, raw: Any) -> EnvEntry:
        """Return the parsed entry, cached by identity: declarations return the same objects for every request."""
        cached = self._entries.get((owner, name))
        if cached is None or cached[0] is not raw:
            cached = self._entries[owner, name] = (raw, read_entry(f"{owner}: env.{name}", raw))
        return cached[1]

    async def _value(self, key: tuple[str, str], entry: EnvEntry, lookup: Lookup, view: Any) -> tuple[Any, bool]:
        """Return the value or a :class:`Missing`, and whether it comes from outside the declaration."""
        if entry.cache_s is None:
            return await self._look_up(key, entry, lookup, view)
        # With the lock, sessions that start together run a slow command once.
        async with self._lock:
            cached = self._cached.get(key)
            # Another declaration may meanwhile use the same name.
            if cached is not None and monotonic() < cached[0] and cached[2] == entry:
                return cached[1], True
            found, outside = await self._look_up(key, entry, lookup, view)
            if not isinstance(found, Missing):
                self._cached[key] = (monotonic() + entry.cache_s, found, entry)
            return found, outside

    async def _look_up(self, key: tuple[str, str], entry: EnvEntry, lookup: Lookup, view: Any) -> tuple[Any, bool]:
        value = entry.value
        if entry.variable:
            found = self._environ.get(str(value))
            return Missing(f"the environment variable {value!r} is not set") if found is None else found, True
        if isinstance(value, str) and not entry.literal:
            if value.startswith("cmd:"):
                return await self.run_command(value[4:].strip(), entry.timeout_s), True
            if value.startswith("file:"):
                return await self._read(value[5:].strip(), entry.timeout_s), True
            if value in self._environ:
                return self._environ[value], True
            found = lookup(value)
            if found is not None and found is not False:
                return found, False
            if _VARIABLE.fullmatch(value):
                return Missing(f"the environment variable {value} is not set"), True
            return value, False
        if callable(value):
            return await self._call_function(f"{key[0]}: env.{key[1]}", value, view, entry.timeout_s), True
        return value, False

    async def run_command(self, command: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str | Missing:
        """Run a shell command and return its output without trailing white space."""
        try:
            environ = self._environ if self._of_command is None else self._of_command(command)
            status, output = await _run(command, environ, self._cwd, timeout_s)
        except TimeoutError:
            return Missing(f"its command took longer than {timeout_s:g} s")
        except OSError as error:
            return Missing(f"its command cannot be run: {error.strerror or type(error).__name__}")
        if status != 0:
            # The output is left out, because it may contain a key.
            return Missing(f"its command ended with status {status}")
        text = output.decode("utf-8", "replace").rstrip()
        return text or Missing("its command printed nothing")

    async def _read(self, path: str, timeout_s: float) -> Any:
        try:
            whole = (self._cwd or Path()) / await anyio.Path(path).expanduser()
            with anyio.fail_after(timeout_s):
                text = (await _read_content(whole)).decode("utf-8").rstrip()
        except TimeoutError:
            return Missing(f"reading the file {path!r} took longer than {timeout_s:g} s")
        except (OSError, RuntimeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            return Missing(f"the file {path!r} cannot be read: {reason}")
        return text or Missing(f"the file {path!r} is empty")

    async def _call_function(self, place: str, function: Callable[..., Any], view: Any, timeout_s: float) -> Any:
        values: dict[str, Any] = dict.fromkeys(VIEW_NAMES, view)
        try:
            # The function may block, for example while reading a key ring.
            found = await call(place, bind(function, values, _ONLY_VIEW), timeout_s, without_message)
        except HandlerError as error:
            at = f" at {error.source}" if error.source else ""
            if error.timed_out:
                return Missing(f"its function took longer than {timeout_s:g} s")
            # The message is left out, because it may quote a secret.
            return Missing(f"its function failed ({error.reason}{at})")
        return found if found is not None else Missing("its function returned nothing")


def read_entry(where: str, raw: Any) -> EnvEntry:
    """Parse an entry of ``env``: a value or a table.

    Raises:
        ConfigError: the table has unknown or invalid fields.
    """
    if not isinstance(raw, Mapping):
        return EnvEntry(value=raw)
    from pydantic import ValidationError

    try:
        return EnvEntry.model_validate(dict(cast("Mapping[str, Any]", raw)))
    except ValidationError as error:
        raise config_error(where, error, EnvEntry, inside=True) from None


async def _run(command: str, environ: Mapping[str, str], cwd: Path | None, timeout_s: float) -> tuple[int, bytes]:
    """Run a shell command and return its exit status and standard output.

    Raises:
        TimeoutError: the command took too long; its process group was killed.
        OSError: the command cannot be run, or its output is too large.
    """
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        env=dict(environ),
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        with anyio.fail_after(timeout_s):
            output = bytearray()
            async for piece in process.stdout:
                output += piece
                if len(output) > OUTPUT_LIMIT:
                    raise OSError(errno.EFBIG, "its output is too large")
            return await process.wait(), bytes(output)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                _kill_group(process.pid)
            await process.aclose()


async def _read_content(path: Path) -> bytes:
    """Read a file. Reading a named pipe, as served by password managers, waits for a writer and is cancellable.

    Raises:
        OSError: the file cannot be read or is too large.
    """
    # Without O_NONBLOCK, opening a pipe without a writer would block a thread forever.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    try:
        waits = stat.S_ISFIFO(os.fstat(handle).st_mode)
        content = bytearray()
        while True:
            try:
                piece = os.read(handle, OUTPUT_LIMIT)
            except BlockingIOError:
                pass
            else:
                content += piece
                if len(content) > OUTPUT_LIMIT:
                    raise OSError(errno.EFBIG, "the file is too large")
                if not piece and (content or not waits):
                    return bytes(content)
                if piece:
                    continue
            await anyio.sleep(PIPE_POLL_S)
    finally:
        os.close(handle)


def _kill_group(pid: int) -> None:
    """Kill a command and all processes of its group."""
    with suppress(ProcessLookupError, PermissionError):
        kill_group(pid)


def is_scalar(value: Any) -> bool:
    """Return whether a value can be a key or a URL: a string, an unquoted number, or ``None``."""
    return value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
