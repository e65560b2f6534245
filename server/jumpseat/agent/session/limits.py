"""What a session may use up, and what is left of it.

Credits are counted where the Copilot API tells what a call took, from the opening of the session in this process.
The model is told of the rest with each prompt; with nothing left it is not called any more.
"""

from __future__ import annotations

from jumpseat.agent.model import NANO
from jumpseat.agent.session.session import LIMITS, Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ProviderQuotaError
from jumpseat_protocol.events import SessionLimits


def limits_of(settings: SessionSettings) -> SessionLimits | None:
    """The limits as events tell them."""
    config = settings.session_limits
    return SessionLimits(max_ai_credits=config.max_ai_credits) if config else None


def tell(session: Session) -> None:
    """Tell the model what is left, where it has not been told just that."""
    left = _left(session)
    if left is None:
        return
    status = (
        f"<session_limits_status>\nRemaining session limits: {_shown(left)} AI credits. Later session_limits_status"
        " messages supersede earlier ones. Be frugal; avoid optional exploration and unnecessary tool calls."
        "\n</session_limits_status>"
    )
    if status != session.limits_told:
        session.add_context(status, LIMITS)


def check(session: Session) -> None:
    """See whether the model may be called.

    Raises:
        ProviderQuotaError: nothing is left.
    """
    left = _left(session)
    if left is not None and left <= 0:
        config = session.settings.session_limits
        limit = _shown(config.max_ai_credits or 0) if config else "0"
        raise ProviderQuotaError(f"the session's limit of {limit} AI credits is used up")


def _left(session: Session) -> float | None:
    config = session.settings.session_limits
    if config is None or config.max_ai_credits is None:
        return None
    return max(0.0, config.max_ai_credits - session.metrics.nano_aiu / NANO)


def _shown(credits_left: float) -> str:
    return f"{credits_left:.2f}".rstrip("0").rstrip(".")
