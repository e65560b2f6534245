"""``jumpseat.runs.*``: the time and the usage of the runs of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class RunOfSession(WireModel):
    """A prompt, and all that followed until the session was idle, with the work of its sub-agents.

    Each moment counts once: as waiting for a person if a question is open, otherwise for a model that answers,
    otherwise for a tool that runs, otherwise as ``other_ms``. Parallel calls therefore count once. Tokens and cost
    are those of all model calls between the beginning and the end.
    """

    interaction_id: str
    """The interaction id of the prompt's events."""
    started_at: str
    """When the prompt began, in ISO 8601."""
    ended_at: str | None = None
    """When the session was idle, in ISO 8601; unset while the run goes on."""
    phase: Literal["waiting", "model", "tools", "other"] | None = None
    """What a run that goes on does now."""
    waiting_ms: int
    """The time in which it waited for people, in milliseconds."""
    model_ms: int
    """The time in which models answered, in milliseconds."""
    tools_ms: int
    """The time in which tools ran, in milliseconds."""
    other_ms: int
    """The rest, in milliseconds."""
    input_tokens: int
    """The input of its model calls, in tokens."""
    output_tokens: int
    """The output of its model calls, in tokens."""
    cache_read_tokens: int
    """The part of the input that came from the provider's cache, in tokens."""
    cost_usd: float | None = None
    """The price of its model calls in US dollars, if it is known."""


class RunsResult(WireModel):
    """The runs, the latest last. Those of earlier versions of the server, and those cut by a crash, are missing."""

    runs: list[RunOfSession]
    """The runs, the latest last."""


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.runs.list": Method(
        SessionParams, RunsResult, "Return the time, the tokens and the cost of the runs of a session."
    ),
}
