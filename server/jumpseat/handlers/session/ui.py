"""``session.ui.*``: questions to the user, and the answers to them."""

from __future__ import annotations

from jumpseat.agent.session.clients import AUTO_MODE_SWITCH
from jumpseat.agent.session.elicitation import elicit
from jumpseat.sessions.context import Context
from jumpseat_protocol.elicitation import ElicitationParams, ElicitationResult, HandlePendingElicitationParams
from jumpseat_protocol.mcp import (
    HandlePendingSamplingParams,
)
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import InterestResult, ReleaseInterestParams, SessionParams
from jumpseat_protocol.state import (
    HandlePendingAutoModeSwitchParams,
    HandlePendingExitPlanModeParams,
    HandlePendingUserInputParams,
    UnregisteredResult,
)


def handle_pending_user_input(ctx: Context, params: HandlePendingUserInputParams) -> SuccessResult:
    """The first answer to a question wins; a late or unknown one is told so."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.user_inputs.answer(params.request_id, params.response))


def handle_pending_exit_plan_mode(ctx: Context, params: HandlePendingExitPlanModeParams) -> SuccessResult:
    """The first answer to a plan wins; a late or unknown one is told so."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.plans.answer(params.request_id, params.response))


def handle_pending_auto_mode_switch(ctx: Context, params: HandlePendingAutoModeSwitchParams) -> SuccessResult:
    """The first answer wins; a late or unknown one is told so."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.auto_mode_switches.answer(params.request_id, params.response))


async def elicitation(ctx: Context, params: ElicitationParams) -> ElicitationResult:
    """Show a form at the clients that can show one, and wait for the first answer."""
    return await elicit(ctx.registry.live(params.session_id), params.message, params.requested_schema)


def handle_pending_elicitation(ctx: Context, params: HandlePendingElicitationParams) -> SuccessResult:
    """The first answer to a form wins; a late or unknown one is told so."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.elicitations.answer(params.request_id, params.result))


def register_direct_auto_mode_switch_handler(ctx: Context, params: SessionParams) -> InterestResult:
    """Note that this client listens for the event and is not to be asked by a request, until it takes that back."""
    session = ctx.registry.live(params.session_id)
    return InterestResult(handle=session.clients.add_interest(ctx.connection, AUTO_MODE_SWITCH))


def unregister_direct_auto_mode_switch_handler(ctx: Context, params: ReleaseInterestParams) -> UnregisteredResult:
    """Take it back; a second time, or with another handle, there is nothing to take back."""
    session = ctx.registry.live(params.session_id)
    return UnregisteredResult(unregistered=session.clients.drop_interest(params.handle, AUTO_MODE_SWITCH))


def handle_pending_sampling(ctx: Context, params: HandlePendingSamplingParams) -> SuccessResult:
    """The first answer to a server's request wins; one without a response refuses it."""
    host = ctx.mcp.of(ctx.registry.live(params.session_id))
    questions = host.questions if host else None
    return SuccessResult(
        success=questions is not None and questions.samplings.answer(params.request_id, params.response)
    )
