"""Going on with the model that a provider chooses, where it turns away the one that the session wants."""

from __future__ import annotations

import logging
import math
from typing import Final

from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.session.asking import first_answer
from jumpseat.agent.session.clients import AUTO_MODE_SWITCH
from jumpseat.agent.session.session import Session
from jumpseat.errors import ClientCallError, JumpseatError, ProviderError, ProviderRateLimitError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import AutoModeSwitchParams

log = logging.getLogger(__name__)

CAUSE: Final = "rate_limit_auto_switch"

OF_ONE_MODEL: Final = ("user_weekly_rate_limited", "user_model_rate_limited")
"""Codes of limits that another model may not have; behind a colon may come the plan of the user. A limit of all
models, or one that is over in a moment, is waited for."""

LONGEST_S: Final = 365 * 24 * 3600
"""Who asks for more patience is not told on: it would not be a number for everybody."""


class SwitchToAutoError(Exception):
    """The session is to go on with ``model``."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.model = model


def another_may_do(error: ProviderError) -> bool:
    """Whether the provider may let another model do what it does not let this one do."""
    return isinstance(error, ProviderRateLimitError) and (error.code or "").partition(":")[0] in OF_ONE_MODEL


async def auto_mode_for(session: Session, resolved: ResolvedModel, error: ProviderError) -> str | None:
    """The model to go on with after ``error``, if there is one and the user wants it."""
    settings = session.settings
    agent = settings.custom_agent
    # One that wants a model of its own would want it again.
    if resolved.find_auto is None or (agent is not None and agent.model is not None):
        return None
    if not settings.continue_on_auto_mode and not session.clients.can_ask_for_auto_mode():
        return None
    try:
        auto = await resolved.find_auto()
    except JumpseatError as failed:
        log.warning("session %s: no model in place of %s was found: %s", session.id, resolved.wire_name, failed)
        return None
    if auto is None:
        return None
    return auto if settings.continue_on_auto_mode or await _says_yes(session, error) else None


async def _says_yes(session: Session, error: ProviderError) -> bool:
    """Whether the user lets the provider choose, now or from now on."""
    clients = session.clients
    pending = clients.auto_mode_switches.ask(str(error))
    completed = events.AutoModeSwitchCompleted(request_id=pending.id, response="no")
    wait_s = None if error.retry_after_s is None else math.ceil(min(error.retry_after_s, LONGEST_S))
    params = AutoModeSwitchParams(session_id=session.id, error_code=error.code, retry_after_seconds=wait_s)
    try:
        session.emit(
            events.AutoModeSwitchRequested(request_id=pending.id, error_code=error.code, retry_after_seconds=wait_s)
        )
        completed.response = await first_answer(
            clients,
            clients.auto_mode_switches,
            pending,
            clients.auto_mode_client,
            lambda client: client.auto_mode_switch(params),
            has_listeners=lambda: clients.has_interest(AUTO_MODE_SWITCH),
        )
    except ClientCallError:
        # Nobody could say yes.
        return False
    finally:
        clients.auto_mode_switches.close(pending)
        session.emit(completed)
    if completed.response == "yes_always":
        session.settings.continue_on_auto_mode = True
        session.services.keep_options(session)
    return completed.response != "no"
