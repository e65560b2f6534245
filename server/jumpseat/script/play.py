"""Playing a script: its steps one after the other, and the rules that always hold beside them."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from jumpseat.adapters.wire import as_object
from jumpseat.script.model_server import ModelServer
from jumpseat.script.patterns import Difference, Known, ScriptError, differences, fill, shown
from jumpseat.script.steps import (
    Answer,
    AnyOrder,
    Call,
    Close,
    Events,
    Expect,
    Never,
    Raw,
    Restart,
    Script,
    Send,
    Set,
    Step,
)
from jumpseat.script.target import EXIT_S, Heard, Target, running

OUR_SERVER: Final = (sys.executable, "-m", "jumpseat", "--headless", "--stdio", "--no-auto-login")
_TAIL: Final = 12


class MismatchError(Exception):
    """A step did not go as written; the text has several lines."""


@dataclass(slots=True)
class Outcome:
    """What came of a script. ``failures`` are texts for people; none means that all went as written."""

    name: str
    steps: int
    failures: list[str] = field(default_factory=list[str])
    conversation: list[Heard] = field(default_factory=list[Heard])
    stderr: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.failures


@dataclass(frozen=True, slots=True)
class Playing:
    """How scripts are played. ``command`` is taken instead of the script's own server; ``keep`` holds the files."""

    command: Sequence[str] | None = None
    keep: Path | None = None


async def play(script: Script, name: str, how: Playing | None = None) -> Outcome:
    """Play ``script`` with a server of its own, in a folder of its own.

    Raises:
        ScriptError: the server cannot be started, or the script uses a name before it is known.
    """
    how = how or Playing()
    outcome = Outcome(script.name or name, len(script.steps))
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        folder = how.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jumpseat-script-")))
        known: Known = {"folder": str(folder)}
        if script.model is not None:
            known["model"] = (await stack.enter_async_context(ModelServer(script.model))).url
        _write_files(script, folder, known)
        player = _Player(script, outcome, known, how.command or _command(script), folder)
        await player.play()
    outcome.seconds = time.monotonic() - started
    return outcome


def _command(script: Script) -> Sequence[str]:
    if script.server is None:
        return OUR_SERVER
    return shlex.split(script.server) if isinstance(script.server, str) else script.server


def _write_files(script: Script, folder: Path, known: Known) -> None:
    files = dict(script.files)
    if script.config is not None:
        files["home/config.toml"] = script.config
    for name, text in files.items():
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ScriptError(f"the file {name!r} is not in the script's folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(fill(text, known)), encoding="utf-8")


class _Player:
    def __init__(
        self, script: Script, outcome: Outcome, known: Known, command: Sequence[str], folder: Path
    ) -> None:
        self._script = script
        self._outcome = outcome
        self._known = known
        self._command = command
        self._folder = folder
        # Where reading stands in what was heard, and where it stood when the step before began.
        self._position = 0
        self._before = 0
        self._closed = False

    async def play(self) -> None:
        number = 0
        for part in self._parts():
            async with self._server() as target:
                try:
                    for step in part:
                        number += 1
                        await self._one(number, step, target)
                    if not self._closed and not _restarts(part):
                        await self._finish(target)
                except MismatchError as mismatch:
                    self._outcome.failures.append(str(mismatch))
                finally:
                    self._outcome.failures += target.problems
                    self._outcome.conversation += target.heard
                    self._outcome.stderr += target.stderr
            if self._outcome.failures:
                return

    def _parts(self) -> list[list[Step]]:
        """The steps of one server process after the other."""
        parts: list[list[Step]] = [[]]
        for step in self._script.steps:
            parts[-1].append(step)
            if isinstance(step, Restart):
                parts.append([])
        return parts

    @asynccontextmanager
    async def _server(self) -> AsyncGenerator[Target]:
        self._position = self._before = 0
        script = self._script
        env = {name: fill(value, self._known) for name, value in script.env.items()}
        async with running(
            self._command, self._folder, env, framing=script.framing, checked=not script.unchecked
        ) as target:
            if script.strict:
                target.use_schema()
            if script.greet:
                await self._call(Call(call="connect", params={}), target)
            yield target

    async def _one(self, number: int, step: Step, target: Target) -> None:
        verb = type(step).__name__.lower()
        start = self._before
        self._before = len(target.heard)
        try:
            match step:
                case Call():
                    verb = f"call of {step.call}"
                    await self._call(step, target)
                case Send():
                    await target.send(fill(step.send, self._known))
                case Raw():
                    await target.write(str(fill(step.raw, self._known)).encode())
                case Expect():
                    await self._expect(step, target)
                case Events():
                    await self._events(step, target)
                case AnyOrder():
                    await self._any_order(step, target)
                case Answer():
                    verb = f"answer to {step.answer}"
                    await self._answer(step, target)
                case Never():
                    await self._never(step, target, start)
                case Close():
                    await self._close(step, target)
                case Restart():
                    await target.kill()
                case Set():
                    self._known.update(fill(step.set, self._known))
        except MismatchError as mismatch:
            text = str(mismatch)
            space = "" if text.startswith("\n") else " "
            raise MismatchError(f"step {number} ({verb}):{space}{text}{self._tail(target)}") from None
        except ScriptError as error:
            raise ScriptError(f"step {number} ({verb}): {error}") from None

    # --- steps --------------------------------------------------------------------------------------------------

    async def _call(self, step: Call, target: Target) -> None:
        answer = await target.ask(step.call, fill(step.params, self._known), self._seconds(step))
        if answer is None:
            raise MismatchError(f"no answer within {self._seconds(step):g} s{_gone(target)}")
        self._compare_answer(step, answer)

    def _compare_answer(self, step: Call, answer: dict[str, Any]) -> None:
        if step.error is not None:
            if "error" not in answer:
                raise MismatchError(
                    f"expected the error {shown(step.error)}, got the result {shown(answer['result'])}"
                )
            found = differences(step.error, answer["error"], self._known)
        elif "error" in answer:
            raise MismatchError(f"expected a result, got the error {shown(answer['error'], 400)}")
        else:
            # A result of null is one too.
            wanted = None if step.result == "<any>" and answer.get("result") is None else step.result
            found = differences(wanted, answer.get("result"), self._known)
        if found:
            raise MismatchError("\n" + _listed(found))

    async def _expect(self, step: Expect, target: Target) -> None:
        if await self._find(step, target, step.expect, _whole) is None:
            raise MismatchError(self._missing(step, target, "message", step.expect, _whole))

    async def _events(self, step: Events, target: Target) -> None:
        start = self._position
        got: list[int] = []
        event_of = _events_of(fill(step.session, self._known))
        for pattern in map(_as_event, step.events):
            place = await self._find(step, target, pattern, event_of)
            if place is None:
                raise MismatchError(self._missing(step, target, "event", pattern, event_of))
            got.append(place)
        if step.only:
            others = [
                event
                for place in range(start, self._position)
                if place not in got
                and (event := event_of(target.heard[place])) is not None
                and event.get("type") not in step.ignore
            ]
            if others:
                names = "\n".join(f"    {_short(one)}" for one in others)
                raise MismatchError(f"events that are not in the list:\n{names}")

    async def _any_order(self, step: AnyOrder, target: Target) -> None:
        start = last = self._position
        event_of = _events_of(fill(step.session, self._known))
        taken: list[int] = []
        for pattern in map(_as_event, step.events_in_any_order):
            self._position = start
            while (place := await self._find(step, target, pattern, event_of)) is not None and place in taken:
                continue
            if place is None:
                self._position = start
                raise MismatchError(self._missing(step, target, "event", pattern, event_of))
            taken.append(place)
            last = max(last, place + 1)
        self._position = last

    async def _answer(self, step: Answer, target: Target) -> None:
        answered = {
            as_object(one.message).get("id")
            for one in target.heard
            if one.direction == "->" and "method" not in as_object(one.message)
        }
        close: list[Difference] = []

        def fits(message: Any) -> bool:
            asked = as_object(message)
            if asked.get("method") != step.answer or "id" not in asked or asked["id"] in answered:
                return False
            found = differences(step.params, asked.get("params"), self._known)
            close[:] = found
            return not found

        asked = await self._wait(step, target, fits, since=0)
        if asked is None:
            hint = f"; one has come that differs:\n{_listed(close)}" if close else _gone(target)
            raise MismatchError(f"no such request within {self._seconds(step):g} s{hint}")
        part = {"result": fill(step.result, self._known)}
        if step.error is not None:
            part = {"error": fill(step.error, self._known)}
        await target.send({"id": as_object(asked)["id"], **part})

    async def _never(self, step: Never, target: Target, start: int) -> None:
        pattern = _as_event(step.never) if isinstance(step.never, str) else step.never
        # What is written like an event is looked for among the events, else among all messages.
        of = _events_of(None) if "type" in as_object(pattern) else _whole

        def seen() -> Any:
            for one in target.heard[start:]:
                value = of(one) if one.direction == "<-" else None
                if value is not None and not differences(pattern, value, dict(self._known)):
                    return value
            return None

        await target.until(lambda: seen() is not None, step.seconds)
        if (found := seen()) is not None:
            raise MismatchError(f"this came: {shown(found, 400)}")

    async def _close(self, step: Close, target: Target) -> None:
        self._closed = True
        code = await target.hang_up(step.within or EXIT_S)
        if code is None:
            raise MismatchError(f"the server still runs {step.within or EXIT_S:g} s after its client has hung up")
        if step.exit is not None and code != step.exit:
            raise MismatchError(f"expected exit code {step.exit}, got {code}")

    async def _finish(self, target: Target) -> None:
        """Let what runs come to its end, hang up, and ask the rules what is missing."""
        if self._script.unchecked:
            await target.hang_up()
            return
        await target.until(lambda: not target.checks.busy, self._script.within)
        # What a server says too much it says now.
        await target.until(lambda: False, 0.05)
        target.problems += target.checks.finished()
        if await target.hang_up() is None:
            target.problems.append(f"the server still runs {EXIT_S:g} s after its client has hung up")

    # --- waiting ------------------------------------------------------------------------------------------------

    def _seconds(self, step: Step) -> float:
        return step.within or self._script.within

    async def _wait(self, step: Step, target: Target, fits: Callable[[Any], bool], *, since: int) -> Any:
        """The first message of the server from ``since`` on that ``fits``; ``None`` where none comes in time."""
        position, found = since, None

        def look() -> bool:
            nonlocal position, found
            while found is None and position < len(target.heard):
                one = target.heard[position]
                position += 1
                if one.direction == "<-" and fits(one.message):
                    found = one.message
            return found is not None

        await target.until(look, self._seconds(step))
        return found

    async def _find(self, step: Step, target: Target, pattern: Any, of: _Of) -> int | None:
        """Read on until something fits ``pattern``; its place, ``None`` where nothing came in time."""
        start = self._position
        place: int | None = None

        def look() -> bool:
            nonlocal place
            while place is None and self._position < len(target.heard):
                one = target.heard[self._position]
                value = of(one) if one.direction == "<-" else None
                if value is not None and not differences(pattern, value, self._known):
                    place = self._position
                self._position += 1
            return place is not None

        await target.until(look, self._seconds(step))
        if place is None:
            self._position = start
        return place

    def _missing(self, step: Step, target: Target, what: str, pattern: Any, of: _Of) -> str:
        """What is said of a pattern that nothing fits: the nearest that has come, field by field."""
        values = [of(one) for one in target.heard[self._position :] if one.direction == "<-"]
        near = [
            (len(found), found, value)
            for value in values
            if value is not None
            if (found := differences(pattern, value, dict(self._known)))
            and not any(one.path in ("type", "method", "id") for one in found)
        ]
        text = f"no {what} like {shown(pattern)} within {self._seconds(step):g} s{_gone(target)}"
        if near:
            _, found, value = min(near, key=lambda one: one[0])
            text += f"\n  the nearest that came is {shown(value, 400)}\n{_listed(found)}"
        return text

    def _tail(self, target: Target) -> str:
        lines = [f"    {one.direction} {_short(as_object(one.message))}" for one in target.heard[-_TAIL:]]
        return "\n  the end of the conversation:\n" + "\n".join(lines) if lines else ""


_Of: TypeAlias = Callable[[Heard], Any]
"""What of a message a pattern is compared with; ``None`` where it is not meant."""


def _restarts(part: Sequence[Step]) -> bool:
    return bool(part) and isinstance(part[-1], Restart)


def _whole(one: Heard) -> Any:
    return one.message


def _events_of(session: str | None) -> _Of:
    def event_of(one: Heard) -> Any:
        message = as_object(one.message)
        params = as_object(message.get("params"))
        if message.get("method") != "session.event" or session not in (None, params.get("sessionId")):
            return None
        return as_object(params.get("event"))

    return event_of


def _as_event(pattern: Any) -> Any:
    return {"type": pattern} if isinstance(pattern, str) else pattern


def _listed(found: list[Difference]) -> str:
    return "\n".join(f"    {one}" for one in found)


def _gone(target: Target) -> str:
    if not target.ended.is_set():
        return ""
    stderr = target.stderr.strip()
    code = f" with exit code {target.exit_code}" if target.exit_code is not None else ""
    return f"; the server has gone{code}" + (f", its stderr ends with: {stderr[-500:]}" if stderr else "")


def _short(message: dict[str, Any]) -> str:
    if message.get("method") == "session.event":
        event = as_object(as_object(message.get("params")).get("event"))
        return f"event {event.get('type')} {shown(event.get('data'), 120)}"
    if "type" in message and "method" not in message:
        return f"{message['type']} {shown(message.get('data'), 120)}"
    if "method" in message:
        asked = f" (id {message['id']!r})" if "id" in message else ""
        return f"{message['method']}{asked} {shown(message.get('params'), 120)}"
    part = "error" if "error" in message else "result"
    return f"{part} of {message.get('id')!r}: {shown(message.get(part), 120)}"
