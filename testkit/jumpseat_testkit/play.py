"""Play a script: its steps in order, and the rules of every conversation."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.links import free_port
from jumpseat_testkit.model.server import ModelServer
from jumpseat_testkit.patterns import Captures, Difference, ScriptError, differences, fill, preview
from jumpseat_testkit.play_setup import Address, PlayOptions, in_folder, write_files
from jumpseat_testkit.protocols import PROTOCOLS, model_variables
from jumpseat_testkit.reports import conversation_end, event_summary, exit_note, list_differences
from jumpseat_testkit.steps import (
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
    step_name,
)
from jumpseat_testkit.target import EXIT_S, Interfere, PlayStoppedError, Target, WireMessage, running_server
from jumpseat_testkit.waiting import QUIET_S, near_misses, wait_for

OUR_SERVER: Final = PROTOCOLS["copilot"].command

_Extract: TypeAlias = Callable[[WireMessage], Any]
"""Extracts the part of a message that a pattern is compared with; ``None`` skips the message."""


class MismatchError(Exception):
    """A step failed; the message has several lines."""


class Outcome(Struct):
    """The outcome of a script. ``failures`` are messages for people, empty if the script passed."""

    name: str
    steps: int
    failures: list[str] = field(default_factory=list[str])
    conversation: list[WireMessage] = field(default_factory=list[WireMessage])
    stderr: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.failures


async def play(script: Script, name: str, options: PlayOptions | None = None) -> Outcome:
    """Play ``script`` against a new server, in a new folder; ``name`` is for scripts without one.

    Raises:
        ScriptError: the server cannot be started, or the script uses a name before it has a value.
    """
    options = options or PlayOptions()
    outcome = Outcome(script.name or name, len(script.steps))
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jumpseat-script-")))
        captures: Captures = {"folder": str(folder)}
        if script.model is not None:
            captures["model"] = (
                await stack.enter_async_context(ModelServer(in_folder(script.model, str(folder))))
            ).url
        write_files(script, folder, captures)
        player = _Player(script, outcome, captures, Address.of(script, options), folder)
        player.interfere = options.interfere
        await player.play()
    outcome.seconds = time.monotonic() - started
    return outcome


class _Player:
    def __init__(
        self, script: Script, outcome: Outcome, captures: Captures, address: Address, folder: Path
    ) -> None:
        self._script = script
        self._outcome = outcome
        self._captures = captures
        self._protocol = PROTOCOLS[script.protocol]
        self._address = address
        self._folder = folder
        # Positions in the traffic: of the next message to read, and of the end when the step before began.
        self._position = 0
        self._before = 0
        self._closed = False
        # How long the last step has waited, for its failure.
        self._waited = ""
        self.interfere: Interfere | None = None

    async def play(self) -> None:
        number = 0
        for part in self._steps_by_process():
            async with self._server() as target:
                target.interfere = self.interfere
                try:
                    if self._script.greet:
                        await self._greet(target)
                    for step in part:
                        number += 1
                        await self._run_step(number, step, target)
                    if not self._closed and not _restarts(part):
                        await self._finish(target)
                except MismatchError as mismatch:
                    self._outcome.failures.append(str(mismatch))
                except PlayStoppedError:
                    return
                finally:
                    self._outcome.failures += target.problems
                    self._outcome.conversation += target.traffic
                    self._outcome.stderr += target.stderr
            if self._outcome.failures:
                return

    def _steps_by_process(self) -> list[list[Step]]:
        """Return the steps in groups, one per server process."""
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
        env = {name: fill(value, self._captures) for name, value in script.env.items()}
        if script.model is not None and self._protocol.has_own_models:
            env = {**model_variables(str(self._captures["model"])), **env}
        # Another port for each process: the one before may not have given up its own.
        address = self._address.at(free_port()) if self._address.url is not None else self._address
        async with running_server(
            address.command,
            self._folder,
            env,
            protocol=self._protocol,
            framing=script.framing,
            url=address.url,
            checked=not script.unchecked,
        ) as target:
            if script.strict:
                target.use_schema()
            yield target

    async def _greet(self, target: Target) -> None:
        method, params, result = self._protocol.greeting
        try:
            await self._call(Call(call=method, params=params, result=result), target)
        except MismatchError as mismatch:
            raise MismatchError(f"greeting ({method}): {str(mismatch).lstrip()}") from None

    async def _run_step(self, number: int, step: Step, target: Target) -> None:
        verb = step_name(step)
        start = self._before
        self._before = len(target.traffic)
        try:
            match step:
                case Call():
                    verb = f"call {step.call}"
                    await self._call(step, target)
                case Send():
                    await target.send(fill(step.send, self._captures))
                case Raw():
                    await target.write(str(fill(step.raw, self._captures)).encode())
                case Expect():
                    await self._expect(step, target)
                case Events():
                    await self._events(step, target)
                case AnyOrder():
                    await self._any_order(step, target)
                case Answer():
                    verb = f"answer {step.answer}"
                    await self._answer(step, target)
                case Never():
                    await self._never(step, target, start)
                case Close():
                    await self._close(step, target)
                case Restart():
                    await target.kill()
                case Set():
                    self._captures.update(fill(step.set, self._captures))
        except MismatchError as mismatch:
            text = str(mismatch)
            space = "" if text.startswith("\n") else " "
            raise MismatchError(
                f"step {number} ({verb}):{space}{text}{conversation_end(target.traffic, self._protocol.feed)}"
            ) from None
        except ScriptError as error:
            raise ScriptError(f"step {number} ({verb}): {error}") from None

    # --- steps --------------------------------------------------------------------------------------------------

    async def _call(self, step: Call, target: Target) -> None:
        answer = await target.request(step.call, fill(step.params, self._captures), self._seconds(step))
        if answer is None:
            raise MismatchError(f"no response within {self._seconds(step):g} s{exit_note(target)}")
        self._compare_answer(step, answer)

    def _compare_answer(self, step: Call, answer: dict[str, Any]) -> None:
        if step.error is not None:
            if "error" not in answer:
                raise MismatchError(
                    f"expected the error {preview(step.error)}, got the result {preview(answer.get('result'))}"
                )
            found = differences(step.error, answer["error"], self._captures)
        elif "error" in answer:
            raise MismatchError(f"expected a result, got the error {preview(answer['error'], 400)}")
        else:
            # By default any result passes, null too.
            expected = None if step.result == "<any>" and answer.get("result") is None else step.result
            found = differences(expected, answer.get("result"), self._captures)
        if found:
            raise MismatchError("\n" + list_differences(found))

    async def _expect(self, step: Expect, target: Target) -> None:
        if await self._find(step, target, step.expect, _whole_message) is None:
            raise MismatchError(self._missing(target, "message", step.expect, _whole_message))

    async def _events(self, step: Events, target: Target) -> None:
        start = self._position
        got: list[int] = []
        event_of = self._events_of(fill(step.session, self._captures))
        for pattern in map(self._as_event, step.events):
            place = await self._find(step, target, pattern, event_of)
            if place is None:
                raise MismatchError(self._missing(target, "event", pattern, event_of))
            got.append(place)
        if step.only:
            others = [
                event
                for place in range(start, self._position)
                if place not in got
                and (event := event_of(target.traffic[place])) is not None
                and event.get(self._protocol.feed.kind) not in step.ignore
            ]
            if others:
                names = "\n".join(f"    {event_summary(event, self._protocol.feed)}" for event in others)
                raise MismatchError(f"unexpected events:\n{names}")

    async def _any_order(self, step: AnyOrder, target: Target) -> None:
        start = last = self._position
        event_of = self._events_of(fill(step.session, self._captures))
        taken: list[int] = []
        for pattern in map(self._as_event, step.events_in_any_order):
            self._position = start
            while (place := await self._find(step, target, pattern, event_of)) is not None and place in taken:
                continue
            if place is None:
                self._position = start
                raise MismatchError(self._missing(target, "event", pattern, event_of))
            taken.append(place)
            last = max(last, place + 1)
        self._position = last

    async def _answer(self, step: Answer, target: Target) -> None:
        answered = {
            as_object(message.message).get("id")
            for message in target.traffic
            if message.direction == "->" and "method" not in as_object(message.message)
        }
        close: list[Difference] = []

        def fits(message: Any) -> bool:
            request = as_object(message)
            if request.get("method") != step.answer or "id" not in request or request["id"] in answered:
                return False
            found = differences(step.params, request.get("params"), self._captures)
            close[:] = found
            return not found

        request = await self._request(step, target, fits, lambda: bool(close))
        if request is None:
            hint = f"; the last {step.answer} differs:\n{list_differences(close)}" if close else exit_note(target)
            raise MismatchError(f"no matching request{self._waited}{hint}")
        part = {"result": fill(step.result, self._captures)}
        if step.error is not None:
            part = {"error": fill(step.error, self._captures)}
        await target.send({"id": as_object(request)["id"], **part})

    async def _never(self, step: Never, target: Target, start: int) -> None:
        pattern = self._as_event(step.never) if isinstance(step.never, str) else step.never
        # A pattern with the type of an event is matched against events, any other against all messages.
        extract = self._events_of(None) if self._protocol.feed.kind in as_object(pattern) else _whole_message

        def seen() -> Any:
            for message in target.traffic[start:]:
                value = extract(message) if message.direction == "<-" else None
                if value is not None and not differences(pattern, value, dict(self._captures)):
                    return value
            return None

        await target.until(lambda: seen() is not None, step.seconds)
        if (found := seen()) is not None:
            raise MismatchError(f"unexpected message: {preview(found, 400)}")

    async def _close(self, step: Close, target: Target) -> None:
        self._closed = True
        code = await target.close_input(step.within or EXIT_S)
        if code is None:
            raise MismatchError(
                f"the server is still running {step.within or EXIT_S:g} s after its input was closed"
            )
        if step.exit is not None and code != step.exit:
            raise MismatchError(f"expected exit code {step.exit}, got {code}")

    async def _finish(self, target: Target) -> None:
        """Wait for running prompts, check what is missing, and close the server's input."""
        if self._script.unchecked:
            await target.close_input()
            return
        await target.until(lambda: not target.checks.busy, self._script.within)
        # Wait for surplus messages.
        await target.until(lambda: False, 0.05)
        target.problems += target.checks.find_unfinished()
        if await target.close_input() is None:
            target.problems.append(f"the server is still running {EXIT_S:g} s after its input was closed")

    # --- waiting ------------------------------------------------------------------------------------------------

    def _seconds(self, step: Step) -> float:
        return step.within or self._script.within

    async def _request(
        self, step: Answer, target: Target, fits: Callable[[Any], bool], other_asked: Callable[[], bool]
    ) -> Any:
        """Return the server's first request that ``fits``; ``None`` on time-out, or once another was asked."""
        position, found = 0, None

        def look() -> bool:
            nonlocal position, found
            while found is None and position < len(target.traffic):
                one = target.traffic[position]
                position += 1
                if one.direction == "<-" and fits(one.message):
                    found = one.message
            return found is not None

        await self._wait(step, target, look, other_asked)
        return found

    async def _find(self, step: Step, target: Target, pattern: Any, extract: _Extract) -> int | None:
        """Read on until a message matches ``pattern``; return its position, or ``None`` if there is none."""
        start = self._position
        place: int | None = None

        def look() -> bool:
            nonlocal place
            while place is None and self._position < len(target.traffic):
                one = target.traffic[self._position]
                value = extract(one) if one.direction == "<-" else None
                if value is not None and not differences(pattern, value, self._captures):
                    place = self._position
                self._position += 1
            return place is not None

        def is_wrong() -> bool:
            return any(
                target.checks.at_rest or target.checks.asks(one.message)
                for one in target.traffic[start:]
                if one.direction == "<-"
                if near_misses(pattern, [extract(one)], self._captures, self._protocol.feed.kind)
            )

        await self._wait(step, target, look, is_wrong)
        if place is None:
            self._position = start
        return place

    async def _wait(
        self, step: Step, target: Target, look: Callable[[], bool], is_wrong: Callable[[], bool]
    ) -> None:
        """Wait until ``look()``. A step with a time limit of its own waits until then, whatever has come."""
        self._waited = f" within {self._seconds(step):g} s"
        if step.within is not None:
            await target.until(look, step.within)
        elif await wait_for(look, target, self._script.within, is_wrong):
            self._waited = f", and nothing more came for {QUIET_S:g} s"

    def _missing(self, target: Target, what: str, pattern: Any, extract: _Extract) -> str:
        """Describe a pattern without a match, with the differences of the closest message."""
        values = [extract(message) for message in target.traffic[self._position :] if message.direction == "<-"]
        text = f"no {what} like {preview(pattern)}{self._waited}{exit_note(target)}"
        for value, found in near_misses(pattern, values, self._captures, self._protocol.feed.kind)[:1]:
            text += f"\n  the closest {what} is {preview(value, 400)}\n{list_differences(found)}"
        return text

    def _events_of(self, session: str | None) -> _Extract:
        return lambda message: self._protocol.feed.event_of(message.message, session)

    def _as_event(self, pattern: Any) -> Any:
        return {self._protocol.feed.kind: pattern} if isinstance(pattern, str) else pattern


def _restarts(part: Sequence[Step]) -> bool:
    return bool(part) and isinstance(part[-1], Restart)


def _whole_message(message: WireMessage) -> Any:
    return message.message
