"""``session.ui.*``: questions to the user, and their answers."""

from __future__ import annotations

from jumpseat.agent.model_calls.side_question import ask_aside
from jumpseat.agent.session.clients import AUTO_MODE_SWITCH
from jumpseat.agent.session.elicitation import elicit
from jumpseat.sessions.context import Context
from jumpseat_protocol.callbacks import ElicitationResult
from jumpseat_protocol.event_log import InterestResult, ReleaseInterestParams
from jumpseat_protocol.mcp import (
    HandlePendingSamplingParams,
)
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.ui import (
    ElicitationParams,
    EphemeralQueryParams,
    EphemeralQueryResult,
    HandlePendingAutoModeSwitchParams,
    HandlePendingElicitationParams,
    HandlePendingExitPlanModeParams,
    HandlePendingUserInputParams,
    UnregisteredResult,
)


async def ephemeral_query(ctx: Context, params: EphemeralQueryParams) -> EphemeralQueryResult:
    """Ask the model a question beside the conversation, also in the middle of a turn."""
    return EphemeralQueryResult(answer=await ask_aside(ctx.registry.live(params.session_id), params.question))


def handle_pending_user_input(ctx: Context, params: HandlePendingUserInputParams) -> SuccessResult:
    """Answer a question of the model. Only the first answer counts; others get ``success: false``."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.user_inputs.answer(params.request_id, params.response))


def handle_pending_exit_plan_mode(ctx: Context, params: HandlePendingExitPlanModeParams) -> SuccessResult:
    """Answer a plan. Only the first answer counts; others get ``success: false``."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.plans.answer(params.request_id, params.response))


def handle_pending_auto_mode_switch(ctx: Context, params: HandlePendingAutoModeSwitchParams) -> SuccessResult:
    """Answer a request to switch to auto mode. Only the first answer counts; others get ``success: false``."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.auto_mode_switches.answer(params.request_id, params.response))


async def elicitation(ctx: Context, params: ElicitationParams) -> ElicitationResult:
    """Send a form to the clients that can show one, and return the first answer."""
    return await elicit(ctx.registry.live(params.session_id), params.message, params.requested_schema)


def handle_pending_elicitation(ctx: Context, params: HandlePendingElicitationParams) -> SuccessResult:
    """Answer a form. Only the first answer counts; others get ``success: false``."""
    session = ctx.registry.live(params.session_id)
    return SuccessResult(success=session.clients.elicitations.answer(params.request_id, params.result))


def register_direct_auto_mode_switch_handler(ctx: Context, params: SessionParams) -> InterestResult:
    """Register this client as one that answers the event, so that it is not sent a request."""
    session = ctx.registry.live(params.session_id)
    return InterestResult(handle=session.clients.add_interest(ctx.connection, AUTO_MODE_SWITCH))


def unregister_direct_auto_mode_switch_handler(ctx: Context, params: ReleaseInterestParams) -> UnregisteredResult:
    """Remove a registration; returns whether there was one with that handle."""
    session = ctx.registry.live(params.session_id)
    return UnregisteredResult(unregistered=session.clients.remove_interest(params.handle, AUTO_MODE_SWITCH))


def handle_pending_sampling(ctx: Context, params: HandlePendingSamplingParams) -> SuccessResult:
    """Answer a sampling request. Only the first answer counts; one without a response refuses the request."""
    host = ctx.mcp.get(ctx.registry.live(params.session_id))
    questions = host.questions if host else None
    return SuccessResult(
        success=questions is not None and questions.samplings.answer(params.request_id, params.response)
    )
