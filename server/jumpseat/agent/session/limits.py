"""The limits of sessions: the credits that remain, and the budgets of those that have any.

Credits are counted from the usage that the Copilot API reports, since the session was opened in this process. The
model is told the remaining credits with each prompt. Without credits it is no longer called.
:mod:`jumpseat.agent.session.budget` has the budgets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from jumpseat.agent.model import NANO
from jumpseat.agent.observation import ModelCall, Record, TraceContext
from jumpseat.agent.session.history import LIMITS_SOURCE
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ProviderQuotaError
from jumpseat_protocol.events import SessionLimits

if TYPE_CHECKING:
    from jumpseat.agent.session.budget import SessionBudget


class BudgetKeeper:
    """The budgets of all live sessions that have any, to which their model calls are added; an observer.

    ``make`` creates the budget of a session; it returns ``None`` for a session without limits. ``outside`` is the
    budget of model calls outside of sessions.
    """

    def __init__(
        self, make: Callable[[Session], SessionBudget | None], outside: SessionBudget | None = None
    ) -> None:
        self._make = make
        self._outside = outside
        self._kept = WeakValueDictionary[str, "SessionBudget"]()

    def find(self, session: Session) -> SessionBudget | None:
        """Return the budget of a session."""
        if session.budget is None and (budget := self._make(session)) is not None:
            session.budget = self._kept[session.id] = budget
        return session.budget

    def begin(self, record: Record) -> None:
        """Do nothing."""

    def end(self, record: Record) -> None:
        """Count a model call."""
        if isinstance(record, ModelCall):
            known = self._outside if record.session_id is None else self._kept.get(record.session_id)
            if known is not None:
                known.count(record)

    def trace_context(self) -> TraceContext | None:
        """Return ``None``: a budget is no trace."""
        return None


def limits_of(settings: SessionSettings) -> SessionLimits | None:
    """Return the limits in the form of events."""
    config = settings.options.session_limits
    return SessionLimits(max_ai_credits=config.max_ai_credits) if config else None


def add_status(session: Session) -> None:
    """Tell the model the remaining credits, unless it was last told the same."""
    left = _credits_left(session)
    if left is None:
        return
    status = (
        f"<session_limits_status>\nRemaining session limits: {_format_credits(left)} AI credits. Later"
        " session_limits_status messages supersede earlier ones. Be frugal; avoid optional exploration and"
        " unnecessary tool calls.\n</session_limits_status>"
    )
    if status != session.history.last_limits_status:
        session.add_context(status, LIMITS_SOURCE)


def check(session: Session) -> None:
    """Check that the session has credits left.

    Raises:
        ProviderQuotaError: the credits are used up.
    """
    left = _credits_left(session)
    if left is not None and left <= 0:
        config = session.root.settings.options.session_limits
        limit = _format_credits(config.max_ai_credits or 0) if config else "0"
        raise ProviderQuotaError(f"the session's limit of {limit} AI credits is used up")


def _credits_left(session: Session) -> float | None:
    # Sub-agents share the credits of the session.
    config = session.root.settings.options.session_limits
    if config is None or config.max_ai_credits is None:
        return None
    return max(0.0, config.max_ai_credits - session.root.metrics.nano_aiu / NANO)


def _format_credits(credits_left: float) -> str:
    return f"{credits_left:.2f}".rstrip("0").rstrip(".")
