"""Continue with a model chosen by the provider when it rate-limits the model of the session."""

from __future__ import annotations

import logging
import math
from typing import Final

from jumpseat.agent.clock import new_id
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.session.clients import AUTO_MODE_SWITCH
from jumpseat.agent.session.questions import first_answer
from jumpseat.agent.session.session import Session
from jumpseat.errors import ClientCallError, JumpseatError, ProviderError, ProviderRateLimitError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import AutoModeSwitchParams

log = logging.getLogger(__name__)

CAUSE: Final = "rate_limit_auto_switch"

MODEL_LIMIT_CODES: Final = ("user_weekly_rate_limited", "user_model_rate_limited")
"""Codes of rate limits that apply to one model; a colon and the user's plan may follow.

Limits on all models and limits that end soon are waited for instead.
"""

MAX_REPORTED_WAIT_S: Final = 365 * 24 * 3600
"""The largest wait reported to clients, in seconds; not all of them can represent larger numbers."""


class SwitchToAutoError(Exception):
    """Raised to repeat a model call with ``model``, the provider's choice."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.model = model


def is_model_limit(error: ProviderError) -> bool:
    """Return whether ``error`` is a rate limit that applies to one model only."""
    return isinstance(error, ProviderRateLimitError) and (error.code or "").partition(":")[0] in MODEL_LIMIT_CODES


async def auto_mode_for(session: Session, resolved: ResolvedModel, error: ProviderError) -> str | None:
    """Return the model to continue with after ``error``; ``None`` if there is none or the user declines."""
    settings = session.settings
    agent = settings.custom_agent
    # A custom agent with its own model would select that again.
    if resolved.find_auto is None or (agent is not None and agent.model is not None):
        return None
    if not settings.options.continue_on_auto_mode and not session.clients.can_ask_for_auto_mode():
        return None
    try:
        auto = await resolved.find_auto()
    except JumpseatError as failed:
        log.warning("session %s: found no replacement for the model %s: %s", session.id, resolved.wire_name, failed)
        return None
    if auto is None:
        return None
    return auto if settings.options.continue_on_auto_mode or await _user_agrees(session, error) else None


async def _user_agrees(session: Session, error: ProviderError) -> bool:
    """Ask the user whether the provider may choose the model, and store the answer "always"."""
    clients = session.clients
    wait_s = None if error.retry_after_s is None else math.ceil(min(error.retry_after_s, MAX_REPORTED_WAIT_S))
    requested = events.AutoModeSwitchRequested(
        request_id=new_id(), error_code=error.code, retry_after_seconds=wait_s
    )
    pending = clients.auto_mode_switches.ask(requested, requested.request_id)
    completed = events.AutoModeSwitchCompleted(request_id=pending.id, response="no")
    params = AutoModeSwitchParams(session_id=session.id, error_code=error.code, retry_after_seconds=wait_s)
    try:
        session.emit(requested)
        completed.response = await first_answer(
            clients,
            clients.auto_mode_switches,
            pending,
            clients.auto_mode_client,
            lambda client: client.auto_mode_switch(params),
            has_listeners=lambda: clients.has_interest(AUTO_MODE_SWITCH),
        )
    except ClientCallError:
        # No client could be asked.
        return False
    finally:
        clients.auto_mode_switches.close(pending)
        session.emit(completed)
    if completed.response == "yes_always":
        session.settings.set_options(continue_on_auto_mode=True)
        session.services.store_options(session)
    return completed.response != "no"
