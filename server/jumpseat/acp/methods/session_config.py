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
from jumpseat.sessions.changes import set_reasoning_effort, set_session_name


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
    view = door.view(params.session_id)
    set_session_name(door.ctx, view.session, params.title, by_user=True)
    return {"title": params.title.strip()}


def _set_mode(door: AcpContext, view: SessionView, text: str) -> None:
    mode = mode_of(text)
    if mode is None:
        known = ", ".join(one_id for one_id, *_ in MODES)
        raise InvalidRequestError(f"there is no mode {text[:100]!r}: expected one of {known}")
    view.session.change_mode(mode)


async def _set_model(door: AcpContext, view: SessionView, model: str) -> None:
    if model not in (values_of(view.options(), MODEL) or ()):
        # The list may still be on its way.
        await view.models_known.wait()
    known = values_of(view.options(), MODEL) or []
    if model not in known and not door.ctx.models.adapters.takes_any(model):
        raise InvalidRequestError(
            f"there is no model {model[:100]!r}: expected one of {', '.join(known) or 'none'}"
        )
    view.session.use_model(model, "sdk")


async def _set_effort(door: AcpContext, view: SessionView, effort: str) -> None:
    known = values_of(view.options(), EFFORT) or []
    if effort not in known:
        raise InvalidRequestError(f"there is no level {effort[:100]!r}: expected one of {', '.join(known)}")
    if effort == DEFAULT:
        view.session.settings.reasoning_effort = None
        return
    await set_reasoning_effort(door.ctx, view.session, effort)


def _allow_all(door: AcpContext, view: SessionView, value: bool | str) -> None:
    if value not in (True, False, "on", "off"):
        raise InvalidRequestError(f"{PERMISSIONS!r} is to be 'on' or 'off'")
    view.session.permissions.set_mode("allow-all" if value in (True, "on") else "manual")
