"""Log entries about prompts, model calls and tool calls. They contain no text of users, models or tools."""

from __future__ import annotations

import logging
from typing import Final

from jumpseat.agent.observation import ModelCall, PromptRun, Question, Record, ToolCall, TraceContext
from jumpseat.errors import ProviderError, ProviderTransportError
from jumpseat.system.log_fields import fields

log = logging.getLogger("jumpseat.sessions")

# A provider's explanation may quote the prompt: it is for debugging only.
PROVIDER_TEXT_CHARS: Final = 2000


class LogEntries:
    """Writes an entry when something has ended."""

    def begin(self, record: Record) -> None:
        """Do nothing."""

    def end(self, record: Record) -> None:
        """Write the entry."""
        match record:
            case PromptRun():
                _log_prompt(record)
            case ModelCall():
                _log_model_call(record)
            case ToolCall():
                _log_tool_call(record)
            case Question() if log.isEnabledFor(logging.INFO):
                log.info(
                    "question answered" if record.result else "question withdrawn",
                    extra=fields(
                        session=record.session_id,
                        asks_for=record.asks_for,
                        kind=record.kind,
                        tool=record.tool,
                        call=record.call_id,
                        answer=record.result or None,
                        ms=round(record.ms),
                    ),
                )
            case _:
                pass

    def trace_context(self) -> TraceContext | None:
        """Return ``None``: a log is no trace."""
        return None


def _log_prompt(record: PromptRun) -> None:
    message = "prompt aborted" if record.aborted else "prompt failed" if record.error_type else "prompt done"
    log.log(
        logging.WARNING if record.error_type and not record.aborted else logging.INFO,
        message,
        extra=fields(
            session=record.session_id,
            prompt=record.prompt_id,
            agent=record.agent,
            error=record.error_type,
            reason=record.reason,
            ms=round(record.ms),
        ),
    )


def _log_model_call(record: ModelCall) -> None:
    error = record.error
    level = logging.WARNING if error is not None else logging.INFO
    if not log.isEnabledFor(level):
        return
    completed, resolved = record.completed, record.resolved
    usage = completed.usage if completed is not None else None
    status = "ok" if completed is not None else error.status if isinstance(error, ProviderError) else None
    message = "model call cancelled" if completed is None else "model call"
    if error is not None:
        message = "model call failed"
    log.log(
        level,
        message,
        extra=fields(
            session=record.session_id,
            purpose=None if record.purpose == "turn" else record.purpose,
            provider=resolved.model.adapter_name,
            model=resolved.wire_name,
            status=status,
            first_ms=None if record.first_ms is None else round(record.first_ms),
            ms=round(record.ms),
            attempt=record.attempt if record.attempt > 1 or error is not None else None,
            input_tokens=usage and usage.input_tokens,
            cached_tokens=(usage and usage.cache_read_tokens) or None,
            output_tokens=usage and usage.output_tokens,
            cost_usd=resolved.cost_of(usage),
            stop=completed.stop_reason if completed is not None else None,
            **_failure_fields(error),
        ),
    )
    if isinstance(error, ProviderError) and not isinstance(error, ProviderTransportError):
        text = str(error)[:PROVIDER_TEXT_CHARS]
        log.debug("the provider's explanation", extra=fields(session=record.session_id, text=text))


def _failure_fields(error: Exception | None) -> dict[str, object]:
    if error is None:
        return {}
    if not isinstance(error, ProviderError):
        return {"error": type(error).__name__}
    found: dict[str, object] = {"error": error.error_type, "code": error.code, "retryable": error.retryable}
    # The reason of a failed connection is in our own words.
    return {**found, "reason": str(error)} if isinstance(error, ProviderTransportError) else found


def _log_tool_call(record: ToolCall) -> None:
    if not log.isEnabledFor(logging.INFO):
        return
    refused = record.decision in ("denied", "rejected")
    log.info(
        "tool call refused" if refused else "tool call" if record.status else "tool call cancelled",
        extra=fields(
            session=record.session_id,
            tool=record.tool,
            call=record.call_id,
            mcp_server=record.server,
            kind=record.kind,
            decision=record.decision,
            by=record.decided_by,
            status=record.status or None,
            exit=record.exit_code,
            ms=round(record.ms),
        ),
    )
