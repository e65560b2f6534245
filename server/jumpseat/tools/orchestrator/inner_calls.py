"""The calls that a running call makes: those of a script.

Each takes the way of a call of the model, with the same hooks, rules, approvals and limits, and has its own events,
which name the outer call. The model gets none of the results, only what the outer call makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import anyio
from msgspec.structs import replace

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import INTERRUPTED, canonical_json
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.model_calls.arguments import repair_call
from jumpseat.agent.model_calls.dialects import meant_tool
from jumpseat.tools.filters import SCRIPTS
from jumpseat.tools.orchestrator.execution import SharedState
from jumpseat.tools.tool import Ordering, SequentialCalls, ToolOutcome, failure

MOST_NOTES: Final = 10
MOST_IMAGES: Final = 10
"""Notes of one call, and images of all calls, that go to the model with the result of the script."""

SHOWN_CHARACTERS: Final = 2000
"""The beginning of a result that is stored and shown: the script gets the whole, and the model none of it."""

NESTED: Final = f"A script cannot call {SCRIPTS}."


def _shown(outcome: ToolOutcome) -> ToolOutcome:
    """Return what is stored of an outcome: a script makes many calls, whose results nobody reads again."""
    return replace(
        outcome,
        text=_beginning(outcome.text),
        error=outcome.error and _beginning(outcome.error),
        detail=outcome.detail and _beginning(outcome.detail),
        session_log=outcome.session_log and _beginning(outcome.session_log),
        images=[],
        resources=[],
    )


def _beginning(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}\n({len(text) - SHOWN_CHARACTERS} more characters)"


class Runner(Protocol):
    """Runs and publishes the calls of a session."""

    def callable_specs(self) -> list[ToolSpec]: ...

    def ordering(self, name: str) -> Ordering: ...

    async def close_off(self, command: Sequence[str]) -> list[str] | None: ...

    async def run_one(
        self, call: ToolUseBlock, state: SharedState, index: int, line: SequentialCalls | None, *, in_turn: bool
    ) -> ToolOutcome: ...

    def publish_start(
        self, call: ToolUseBlock, turn_id: str | None, *, runs: bool, outer: str | None = None
    ) -> None: ...

    def publish_end(
        self, call: ToolUseBlock, outcome: ToolOutcome, turn_id: str | None, *, outer: str | None = None
    ) -> None: ...


class InnerCalls:
    """The calls of the call ``outer``. Implements :class:`jumpseat.tools.tool.Inner`.

    ``state`` is that of the outer call, because a person who rejects or cancels a call means the whole answer.
    """

    def __init__(self, owner: Runner, outer: ToolUseBlock, state: SharedState) -> None:
        self._owner = owner
        self._outer = outer
        self._state = state
        self._turn_id = state.turn_id
        self._count = 0
        # Calls with effects run one at a time, as those of an answer do.
        self._queue = anyio.Lock()
        self.effects = ToolOutcome("")

    def specs(self) -> list[ToolSpec]:
        """Return the specs of the tools that can be called."""
        return [spec for spec in self._owner.callable_specs() if spec.name != SCRIPTS]

    def meant(self, name: str) -> str | None:
        """Return the name of our tool that another agent calls ``name``; ``None`` if there is none."""
        return meant_tool(name, {})

    async def close_off(self, command: Sequence[str]) -> list[str] | None:
        """Return the command line that confines ``command`` to computing; ``None`` if no sandbox can do that."""
        return await self._owner.close_off(command)

    async def run(self, name: str, arguments: JsonObject) -> ToolOutcome:
        """Run a call and return its outcome, also if the call is cancelled with the outer one.

        Raises:
            JumpseatError: an error of the session, such as a log that cannot be written.
        """
        try:
            written = canonical_json(arguments)
        except TypeError as error:
            return failure(f"The arguments cannot be sent as JSON: {error}.")
        self._count += 1
        # The calls of the answer have the positions from 0 on.
        index = -self._count
        call = ToolUseBlock(f"{self._outer.id}.{self._count}", name, written, arguments)
        call = repair_call(call, {spec.name: spec for spec in self._owner.callable_specs()})
        owner, state = self._owner, self._state
        owner.publish_start(call, self._turn_id, runs=True, outer=self._outer.id)
        outcome: ToolOutcome | None = None
        try:
            if call.name == SCRIPTS:
                outcome = failure(NESTED)
            elif owner.ordering(call.name) == "queued":
                async with self._queue:
                    outcome = await self._run_queued(call, index)
            else:
                outcome = await owner.run_one(call, state, index, None, in_turn=self._turn_id is not None)
            return self._noted(outcome)
        finally:
            if outcome is None:
                outcome = state.aborted.get(index) or failure(INTERRUPTED)
            owner.publish_end(call, _shown(outcome), self._turn_id, outer=self._outer.id)

    async def _run_queued(self, call: ToolUseBlock, index: int) -> ToolOutcome:
        line = SequentialCalls()
        try:
            return await self._owner.run_one(call, self._state, index, line, in_turn=self._turn_id is not None)
        finally:
            with anyio.CancelScope(shield=True):
                await line.end()

    def _noted(self, outcome: ToolOutcome) -> ToolOutcome:
        effects = self.effects
        if outcome.status == "rejected":
            effects.status = "rejected"
        effects.ends_turn = effects.ends_turn or outcome.ends_turn
        effects.stopped = effects.stopped or outcome.stopped
        effects.contexts += outcome.contexts
        effects.messages += outcome.messages
        effects.references += outcome.references
        effects.notes += (note for note in outcome.notes[:MOST_NOTES] if note not in effects.notes)
        effects.images += outcome.images[: max(0, MOST_IMAGES - len(effects.images))]
        return outcome
