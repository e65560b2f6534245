"""``jumpseat.portability``: the form in which another model would receive a conversation."""

from __future__ import annotations

from jumpseat.agent.settings import SessionSettings
from jumpseat.completion.conversion import to_conversation
from jumpseat.completion.portability import report
from jumpseat.completion.request import resolve_model, settings_of
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.context import Context
from jumpseat.system.working_directory import existing_folder
from jumpseat_protocol.complete import PortabilityParams
from jumpseat_protocol.portability import Portability


async def portability(ctx: Context, params: PortabilityParams) -> Portability:
    """Return for each block whether the target model receives it unchanged, converted or not at all.

    Raises:
        InvalidRequestError: there is no conversation, or it is invalid.
        JumpseatError: the model cannot be resolved.
    """
    if (params.session_id is None) == (params.messages is None):
        raise InvalidRequestError("expected either sessionId or messages")
    if params.messages is not None:
        _, messages = to_conversation(params.messages, may_end_in_calls=True)
        return report(messages, await resolve_model(ctx.models, params, settings_of(params)), params.messages)
    session = ctx.registry.live(params.session_id or "")
    resolved = await resolve_model(ctx.models, params, _settings(session.settings, params))
    return report(session.conversation.messages(), resolved)


def _settings(settings: SessionSettings, params: PortabilityParams) -> SessionSettings:
    """Return the settings of a session with the target model in place of its own."""
    is_own = params.model is None and params.provider is None and params.adapter is None
    changed = settings.with_options(
        model=params.model or (settings.options.model if params.provider is None else None),
        provider=params.provider or settings.options.provider,
        # Those are for the session's own model.
        adapter_settings={},
        model_capabilities=settings.options.model_capabilities if is_own else None,
    )
    if params.cwd is not None:
        changed.cwd = existing_folder("cwd", params.cwd)
    return changed
