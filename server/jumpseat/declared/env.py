"""Values that a declaration names but does not hold: keys, hosts, versions. For adapters and tools alike.

Each entry of ``env`` is one of these; the first that fits counts:

1. ``"cmd:COMMAND"``: what the command prints, run by the shell of the system;
2. ``"file:PATH"``: what the file or named pipe holds (``~`` and paths relative to the working directory are fine);
3. the name of an environment variable that is set, even to nothing;
4. a function: what it returns for the adapter or tool, awaited where it is asynchronous;
5. a dotted path into it (``schema.model.default``, ``args.file``);
6. the text itself.

A table says more: ``{value = "cmd:op read ...", optional = true, cache_s = 3600, timeout_s = 5}``. Without
``cache_s`` everything is looked up anew for every request. A text that looks like the name of a variable
(``OPENAI_API_KEY``) and is none of the first five is a variable that is not set, not a key; ``literal = true``
says otherwise, and ``variable = true`` that it is a variable whatever it looks like.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import stat
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeAlias, cast

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from jumpseat.declared.files import ENDING
from jumpseat.errors import ConfigError, validation_problems
from jumpseat.process_groups import kill_group

COMMAND_TIMEOUT_S: Final = 20.0

OUTPUT_LIMIT: Final = 1024 * 1024
"""Bytes that a command may print, and a file may hold."""

PIPE_POLL_S: Final = 0.02
"""How often a pipe is asked whether somebody has written to it."""

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
SECRET_NAME: Final = re.compile(r"auth|key|token|secret|password|cookie|signature", re.IGNORECASE)
"""What is called so is a secret: entries of ``env``, headers."""
_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]+)\}")

Lookup: TypeAlias = Callable[[str], Any]
"""Finds a dotted path in the adapter or tool; ``None`` where there is nothing."""


class EnvEntry(BaseModel):
    """One entry of ``env``. Times are in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    value: Any
    optional: bool = False
    literal: bool = False
    variable: bool = False
    cache_s: float | None = Field(default=None, ge=0, allow_inf_nan=True)
    timeout_s: float = Field(default=COMMAND_TIMEOUT_S, gt=0)


@dataclass(frozen=True, slots=True)
class Missing:
    """Why an entry has no value. ``optional`` tells that whatever needs it may be left out."""

    reason: str
    optional: bool = False


class MissingValueError(ConfigError):
    """A placeholder has no value; ``name`` is its name."""

    def __init__(self, owner: str, name: str, reason: str) -> None:
        super().__init__(f"{owner}: ${{{name}}} has no value: {reason}")
        self.name = name


@dataclass(frozen=True, slots=True)
class EnvValues:
    """The values of one adapter or tool for one request. ``secret`` are those that came from outside the
    declaration, or are called like a secret. ``owner`` is for error texts."""

    owner: str
    values: Mapping[str, Any] = field(repr=False)
    missing: Mapping[str, Missing] = field(default_factory=dict[str, Missing])
    secret: frozenset[str] = field(default=frozenset(), repr=False)

    def text(self, template: str) -> str | None:
        """``template`` with its ``${name}`` filled in; ``None`` where an optional one has no value.

        Raises:
            MissingValueError: one that is not optional has none, or is not declared.
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

        filled = _PLACEHOLDER.sub(value, template)
        return None if absent else filled


class EnvResolver:
    """Looks values up. One per process: it keeps what entries with ``cache_s`` allow it to keep."""

    def __init__(self, environ: Mapping[str, str], *, cwd: Path | None = None) -> None:
        self._environ = environ
        self._cwd = cwd
        self._kept: dict[tuple[str, str], tuple[float, Any, EnvEntry]] = {}
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
        """The values of all entries of ``env``. What is ``given`` is taken as it is and wins.

        ``owner`` is who they are for, as error texts name it. ``lookup`` finds dotted paths in it; ``view`` is what
        functions are called with. An entry without a value fails only where it is used.
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
        """An entry, which is judged once: declarations hand out the same objects for every request."""
        kept = self._entries.get((owner, name))
        if kept is None or kept[0] is not raw:
            kept = self._entries[owner, name] = (raw, read_entry(f"{owner}: env.{name}", raw))
        return kept[1]

    async def _value(self, key: tuple[str, str], entry: EnvEntry, lookup: Lookup, view: Any) -> tuple[Any, bool]:
        """The value, or why there is none; and whether it comes from outside the declaration."""
        if entry.cache_s is None:
            return await self._find(entry, lookup, view)
        # Sessions that start together run a slow command once.
        async with self._lock:
            kept = self._kept.get(key)
            # Another declaration may have taken the name since.
            if kept is not None and monotonic() < kept[0] and kept[2] == entry:
                return kept[1], True
            found, outside = await self._find(entry, lookup, view)
            if not isinstance(found, Missing):
                self._kept[key] = (monotonic() + entry.cache_s, found, entry)
            return found, outside

    async def _find(self, entry: EnvEntry, lookup: Lookup, view: Any) -> tuple[Any, bool]:
        value = entry.value
        if entry.variable:
            found = self._environ.get(str(value))
            return Missing(f"the environment variable {value!r} is not set") if found is None else found, True
        if isinstance(value, str) and not entry.literal:
            if value.startswith("cmd:"):
                return await self.printed(value[4:].strip(), entry.timeout_s), True
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
            return await self._called(value, view, entry.timeout_s), True
        return value, False

    async def printed(self, command: str, timeout_s: float = COMMAND_TIMEOUT_S) -> str | Missing:
        """What a command of the system's shell prints, without the end of its last line."""
        try:
            status, output = await _run(command, self._environ, self._cwd, timeout_s)
        except TimeoutError:
            return Missing(f"its command took longer than {timeout_s:g} s")
        except OSError as error:
            return Missing(f"its command cannot be run: {error.strerror or type(error).__name__}")
        if status != 0:
            # Not what it printed: commands that give keys may print them.
            return Missing(f"its command ended with status {status}")
        text = output.decode("utf-8", "replace").rstrip()
        return text or Missing("its command printed nothing")

    async def _read(self, path: str, timeout_s: float) -> Any:
        try:
            whole = (self._cwd or Path()) / await anyio.Path(path).expanduser()
            with anyio.fail_after(timeout_s):
                text = (await _content(whole)).decode("utf-8").rstrip()
        except TimeoutError:
            return Missing(f"the file {path!r} gave nothing within {timeout_s:g} s")
        except (OSError, RuntimeError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            return Missing(f"the file {path!r} cannot be read: {reason}")
        return text or Missing(f"the file {path!r} is empty")

    async def _called(self, function: Callable[..., Any], view: Any, timeout_s: float) -> Any:
        try:
            with anyio.fail_after(timeout_s):
                if inspect.iscoroutinefunction(function):
                    found = await function(view)
                else:
                    # It may block: reading a key ring, say.
                    found = await anyio.to_thread.run_sync(function, view, abandon_on_cancel=True)
                if inspect.isawaitable(found):
                    found = await found
        except TimeoutError:
            return Missing(f"its function took longer than {timeout_s:g} s")
        except (Exception, *ENDING) as error:
            # Not its text, which may quote the secret it was after.
            return Missing(f"its function failed ({type(error).__name__})")
        return found if found is not None else Missing("its function returned nothing")


def read_entry(where: str, raw: Any) -> EnvEntry:
    """An entry of ``env`` in any of its forms.

    Raises:
        ConfigError: a table that says something unknown.
    """
    if not isinstance(raw, Mapping):
        return EnvEntry(value=raw)
    from pydantic import ValidationError

    try:
        return EnvEntry.model_validate(dict(cast("Mapping[str, Any]", raw)))
    except ValidationError as error:
        raise ConfigError(f"{where}.{validation_problems(error)[0]}") from None


async def _run(command: str, environ: Mapping[str, str], cwd: Path | None, timeout_s: float) -> tuple[int, bytes]:
    """Run a shell command and return its status and what it printed.

    Raises:
        TimeoutError: it took too long; nothing of it is left running.
        OSError: it cannot be run.
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
                    raise OSError(errno.EFBIG, "it prints too much")
            return await process.wait(), bytes(output)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                _kill_group(process.pid)
            await process.aclose()


async def _content(path: Path) -> bytes:
    """What a file holds. Password managers serve secrets in named pipes: those are waited for, and give way.

    Raises:
        OSError: it cannot be read, or holds too much.
    """
    # Opening a pipe that nobody writes to waits for ever, in a thread that nobody can stop.
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
                    raise OSError(errno.EFBIG, "it holds too much")
                if not piece and (content or not waits):
                    return bytes(content)
                if piece:
                    continue
            await anyio.sleep(PIPE_POLL_S)
    finally:
        os.close(handle)


def _kill_group(pid: int) -> None:
    """End a command with everything that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        kill_group(pid)


def is_text(value: Any) -> bool:
    """Whether a value can stand for a key or an address: a text, a number without quotes, or ``None`` for none."""
    return value is None or (isinstance(value, (str, int, float)) and not isinstance(value, bool))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
