"""Keep the tokens, the cost and the times of model calls with their sessions, for the plots of the page."""

from __future__ import annotations

import logging
from pathlib import Path

from jumpseat.agent.clock import utc_now
from jumpseat.agent.model import Usage
from jumpseat.agent.observation import ModelCall, Record, TraceContext
from jumpseat.store.session.model_calls import ModelCallFile

log = logging.getLogger(__name__)


class ModelCallFiles:
    """Writes a line for each model call that gave an answer; ``root`` is the folder of all sessions."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin(self, record: Record) -> None:
        """Do nothing."""

    def end(self, record: Record) -> None:
        """Write the line; a failure is logged."""
        if not isinstance(record, ModelCall) or record.completed is None or record.session_id is None:
            return
        # Not at the start of a server, which need not ever call a model.
        from jumpseat_protocol.web import ModelCallUsage

        usage = record.completed.usage or Usage()
        call = ModelCallUsage(
            time=utc_now(),
            purpose=record.purpose,
            model=record.completed.model or record.resolved.wire_name,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            cost_usd=record.resolved.cost_of(record.completed.usage),
            duration_ms=round(record.ms),
            first_token_ms=None if record.first_ms is None else round(record.first_ms),
            finish_reason=record.completed.stop_reason,
            context_window=record.resolved.known.window or None,
            agent_id=record.agent_id,
        )
        try:
            ModelCallFile(self._root / record.session_id).append(call.wire())
        except OSError as error:
            log.warning("cannot keep the usage of a model call: %s", error.strerror or error)

    def trace_context(self) -> TraceContext | None:
        """Return ``None``: the file is no trace."""
        return None
