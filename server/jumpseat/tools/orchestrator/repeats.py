"""Guard against a model that repeats a call without end: the same arguments, the same result, nothing new between.

The order of arguments does not count, nor do remarks about a call of a built-in tool, such as a ``description``.
The third result of a row gets a hint for the model. The user is asked before the fifth call runs; without anybody
to ask, the call fails. Tools that wait for something are exempt.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import orjson
from msgspec import Struct

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.errors import ClientCallError
from jumpseat.tools.filters import SourceName, is_named
from jumpseat.tools.orchestrator.environment import RepeatLimits
from jumpseat.tools.tool import ToolOutcome, failure, is_remark
from jumpseat_protocol.callbacks import UserInputResponse

POLLING: Final = frozenset(
    {"read_bash", "write_bash", "list_bash", "read_agent", "list_agents", "ask_user", "exit_plan_mode"}
)
"""Built-in tools whose calls are repeated on purpose."""

CONTINUE: Final = "Continue"
STOP: Final = "Stop"

Ask: TypeAlias = Callable[[str, list[str]], Awaitable[UserInputResponse]]


class _Row(Struct):
    """Equal calls in a row: the hash of their result, their number, and the number of new calls before the last."""

    result: int
    count: int
    news: int


class Repeats:
    """Counts the calls of one session since the last prompt."""

    def __init__(self, limits: RepeatLimits) -> None:
        self._limits = limits
        self._rows: dict[int, _Row] = {}
        self._news = 0

    def watches(self, name: str, source: SourceName) -> bool:
        """Return whether calls of a tool are counted."""
        exempt = self._limits.exempt
        return not (source == "builtin" and name in POLLING) and not (exempt and is_named(name, source, exempt))

    async def check(self, call: ToolUseBlock, source: SourceName, ask: Ask) -> ToolOutcome | None:
        """Return the outcome of a call that must not run once more; ``None`` if it may."""
        row = self._rows.get(_hash(call, source))
        if row is None or not self._limits.question or row.count + 1 < self._limits.question:
            return None
        if row.news != self._news:
            return None
        question = f"The agent repeats a call of {call.name}, and got the same result {row.count} times. Continue?"
        try:
            answer = await ask(question, [CONTINUE, STOP])
        except ClientCallError:
            return failure(
                f"This call did not run, because it had the same result {row.count} times. Do something else."
            )
        if answer.answer != CONTINUE:
            said = "" if answer.answer == STOP else f" They said: {answer.answer}"
            return ToolOutcome(
                f"The user stopped this call, because it had the same result {row.count} times.{said}", "denied"
            )
        row.count = 0
        return None

    def count(self, call: ToolUseBlock, source: SourceName, outcome: ToolOutcome) -> str:
        """Count a call that has run; return the hint for the model, empty if none is due."""
        key, result = _hash(call, source), hash((outcome.status, outcome.text))
        row = self._rows.get(key)
        if row is None or row.result != result:
            self._news += 1
            self._rows[key] = _Row(result, 1, self._news)
            return ""
        row.count = row.count + 1 if row.news == self._news else 1
        row.news = self._news
        if not self._limits.hint or row.count < self._limits.hint:
            return ""
        return (
            f"\n[This call had the same result {row.count} times. Repeating it will not help: do something else.]"
        )


def _hash(call: ToolUseBlock, source: SourceName) -> int:
    if call.arguments is None:
        return hash((call.name, call.arguments_json))
    arguments = call.arguments
    if source == "builtin":
        arguments = {name: value for name, value in arguments.items() if not is_remark(name)}
    return hash((call.name, orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)))
