"""Keep the tokens, the cost and the times of model calls with their sessions, for the plots of the page."""

from __future__ import annotations

import logging
from collections.abc import Callable

from jumpseat.agent.clock import utc_now
from jumpseat.agent.model import Usage
from jumpseat.agent.observation import ModelCall, Record, TraceContext
from jumpseat.store.session.model_calls import ModelCallFile

log = logging.getLogger(__name__)


class ModelCallFiles:
    """Writes a line for each model call that gave an answer; ``file_of`` returns the file of a session, if any."""

    def __init__(self, file_of: Callable[[str], ModelCallFile | None]) -> None:
        self._file_of = file_of

    def begin(self, record: Record) -> None:
        """Do nothing."""

    def end(self, record: Record) -> None:
        """Write the line; a failure is logged."""
        if not isinstance(record, ModelCall) or record.completed is None or record.session_id is None:
            return
        if (file := self._file_of(record.session_id)) is None:
            return
        usage = record.completed.usage or Usage()
        # As ``ModelCallUsage`` has them, whose module would be loaded for this alone in the first turn.
        call = {
            "time": utc_now(),
            "purpose": record.purpose,
            "model": record.completed.model or record.resolved.wire_name,
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "cacheReadTokens": usage.cache_read_tokens,
            "cacheWriteTokens": usage.cache_write_tokens,
            "reasoningTokens": usage.reasoning_tokens,
            "costUsd": record.resolved.cost_of(record.completed.usage),
            "durationMs": round(record.ms),
            "firstTokenMs": None if record.first_ms is None else round(record.first_ms),
            "finishReason": record.completed.stop_reason,
            "contextWindow": record.resolved.known.window or None,
            "agentId": record.agent_id,
        }
        try:
            file.append({name: value for name, value in call.items() if value is not None})
        except OSError as error:
            log.warning("cannot keep the usage of a model call: %s", error.strerror or error)

    def trace_context(self) -> TraceContext | None:
        """Return ``None``: the file is no trace."""
        return None
