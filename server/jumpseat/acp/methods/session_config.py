"""``session/set_mode``, ``set_config_option``, ``set_model`` and ``set_title``."""

from __future__ import annotations

from typing import Any

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.view import SessionView
from jumpseat.acp.translation.options import DEFAULT, EFFORT, MODE, MODEL, MODES, PERMISSIONS, mode_of, values_of
from jumpseat.acp.translation.params import SetConfigOptionParams, SetModelParams, SetModeParams, SetTitleParams
from jumpseat.errors import InvalidRequestError, SessionNotFoundError
from jumpseat.sessions.changes import set_reasoning_effort, set_session_name, set_stored_name
from jumpseat.sessions.options import check_allowed


def set_mode(ctx: AcpContext, params: SetModeParams) -> dict[str, Any]:
    """Change the mode. The editor gets an update, as for every change of the mode."""
    _set_mode(ctx, ctx.view(params.session_id), params.mode_id)
    return {}


async def set_model(ctx: AcpContext, params: SetModelParams) -> dict[str, Any]:
    """Change the model, for editors that do not know options."""
    await _set_model(ctx, ctx.view(params.session_id), params.model_id)
    return {}


async def set_config_option(ctx: AcpContext, params: SetConfigOptionParams) -> dict[str, Any]:
    """Change one option and return all of them, because one may depend on another.

    Raises:
        InvalidRequestError: the option or its value is unknown.
    """
    view, value = ctx.view(params.session_id), params.value
    if params.config_id == PERMISSIONS:
        _allow_all(ctx, view, value)
    elif isinstance(value, bool):
        raise InvalidRequestError(f"option {params.config_id[:100]!r} is not a boolean")
    elif params.config_id == MODE:
        _set_mode(ctx, view, value)
    elif params.config_id == MODEL:
        await _set_model(ctx, view, value)
    elif params.config_id == EFFORT:
        await _set_effort(ctx, view, value)
    else:
        raise InvalidRequestError(f"unknown option {params.config_id[:100]!r}")
    return {"configOptions": ctx.editor.version.options(view.options())}


def set_title(ctx: AcpContext, params: SetTitleParams) -> dict[str, Any]:
    """Name a session, whether it is live or only stored."""
    try:
        session = ctx.server.registry.live(params.session_id)
    except SessionNotFoundError:
        set_stored_name(ctx.server, params.session_id, params.title)
    else:
        set_session_name(ctx.server, session, params.title, by_user=True)
    return {"title": params.title.strip()}


def _set_mode(ctx: AcpContext, view: SessionView, text: str) -> None:
    mode = mode_of(text)
    if mode is None:
        known = ", ".join(one_id for one_id, *_ in MODES)
        raise InvalidRequestError(f"unknown mode {text[:100]!r}: expected one of {known}")
    view.session.change_mode(mode)


async def _set_model(ctx: AcpContext, view: SessionView, model: str) -> None:
    if model not in (values_of(view.options(), MODEL) or ()):
        # The list may be incomplete so far.
        await view.models_known.wait()
    known = values_of(view.options(), MODEL) or []
    if model not in known and not ctx.server.models.adapters.may_have(model):
        raise InvalidRequestError(f"unknown model {model[:100]!r}: expected one of {', '.join(known) or 'none'}")
    check_allowed(view.session.settings, model)
    view.session.use_model(model, "sdk")


async def _set_effort(ctx: AcpContext, view: SessionView, effort: str) -> None:
    known = values_of(view.options(), EFFORT) or []
    if effort not in known:
        raise InvalidRequestError(f"unknown reasoning effort {effort[:100]!r}: expected one of {', '.join(known)}")
    if effort == DEFAULT:
        view.session.settings.set_options(reasoning_effort=None)
        return
    await set_reasoning_effort(ctx.server, view.session, effort)


def _allow_all(ctx: AcpContext, view: SessionView, value: bool | str) -> None:
    if value not in (True, False, "on", "off"):
        raise InvalidRequestError(f"{PERMISSIONS!r} must be 'on' or 'off'")
    view.session.permissions.set_mode("allow-all" if value in (True, "on") else "manual")
