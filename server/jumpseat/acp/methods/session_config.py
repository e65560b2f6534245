"""``session/set_mode``, ``set_config_option``, ``set_model`` and ``set_title``.

What few sessions ask for is loaded when it is asked for: the start of the process is what an editor waits for.
"""

from __future__ import annotations

from typing import Any

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.view import SessionView
from jumpseat.acp.translation.options import DEFAULT, EFFORT, MODE, MODEL, MODES, PERMISSIONS, mode_of, values_of
from jumpseat.acp.translation.params import SetConfigOptionParams, SetModelParams, SetModeParams, SetTitleParams
from jumpseat.errors import InvalidRequestError
from jumpseat.handlers import session_mode, session_model
from jumpseat_protocol.sessions import ModelSwitchParams, ModeSetParams


def set_mode(door: AcpContext, params: SetModeParams) -> dict[str, Any]:
    """Change the mode; the editor is told, as of any other change of it."""
    _set_mode(door, door.view(params.session_id), params.mode_id)
    return {}


async def set_model(door: AcpContext, params: SetModelParams) -> dict[str, Any]:
    """As editors from before the options call it."""
    await _set_model(door, door.view(params.session_id), params.model_id)
    return {}


async def set_config_option(door: AcpContext, params: SetConfigOptionParams) -> dict[str, Any]:
    """Change one option and tell all of them: one may depend on another.

    Raises:
        InvalidRequestError: there is no such option, or it has no such value.
    """
    view, value = door.view(params.session_id), params.value
    if params.config_id == PERMISSIONS:
        _allow_all(door, view, value)
    elif isinstance(value, bool):
        raise InvalidRequestError(f"{params.config_id[:100]!r} is not an option that is on or off")
    elif params.config_id == MODE:
        _set_mode(door, view, value)
    elif params.config_id == MODEL:
        await _set_model(door, view, value)
    elif params.config_id == EFFORT:
        await _set_effort(door, view, value)
    else:
        raise InvalidRequestError(f"there is no option {params.config_id[:100]!r}")
    return {"configOptions": view.options()}


def set_title(door: AcpContext, params: SetTitleParams) -> dict[str, Any]:
    """Name the session."""
    from jumpseat.handlers import session_name
    from jumpseat_protocol.state import NameSetParams

    view = door.view(params.session_id)
    session_name.name_set(door.ctx, NameSetParams(session_id=view.session_id, name=params.title))
    return {"title": params.title.strip()}


def _set_mode(door: AcpContext, view: SessionView, text: str) -> None:
    mode = mode_of(text)
    if mode is None:
        known = ", ".join(one_id for one_id, *_ in MODES)
        raise InvalidRequestError(f"there is no mode {text[:100]!r}: expected one of {known}")
    session_mode.mode_set(door.ctx, ModeSetParams(session_id=view.session_id, mode=mode))


async def _set_model(door: AcpContext, view: SessionView, model: str) -> None:
    if model not in (values_of(view.options(), MODEL) or ()):
        # The list may still be on its way.
        await view.models_known.wait()
    known = values_of(view.options(), MODEL) or []
    if model not in known and not door.ctx.models.adapters.takes_any(model):
        raise InvalidRequestError(
            f"there is no model {model[:100]!r}: expected one of {', '.join(known) or 'none'}"
        )
    session_model.switch_to(door.ctx, ModelSwitchParams(session_id=view.session_id, model_id=model))


async def _set_effort(door: AcpContext, view: SessionView, effort: str) -> None:
    known = values_of(view.options(), EFFORT) or []
    if effort not in known:
        raise InvalidRequestError(f"there is no level {effort[:100]!r}: expected one of {', '.join(known)}")
    if effort == DEFAULT:
        view.session.settings.reasoning_effort = None
        return
    from jumpseat.handlers import session_model_settings
    from jumpseat_protocol.state import ReasoningEffortParams

    params = ReasoningEffortParams(session_id=view.session_id, reasoning_effort=effort)
    await session_model_settings.set_reasoning_effort(door.ctx, params)


def _allow_all(door: AcpContext, view: SessionView, value: bool | str) -> None:
    if value not in (True, False, "on", "off"):
        raise InvalidRequestError(f"{PERMISSIONS!r} is to be 'on' or 'off'")
    from jumpseat.handlers import session_permission_mode as permission_mode
    from jumpseat_protocol.state import PermissionModeParams

    mode = "allow-all" if value in (True, "on") else "manual"
    permission_mode.set_mode(door.ctx, PermissionModeParams(session_id=view.session_id, mode=mode))
