"""A session's modes and configuration options, which editors show as pickers. Pure.

Both contain the mode, because editors are moving from modes to options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from jumpseat.agent.model import ModelInfo
from jumpseat.sessions.shown import options as shown
from jumpseat_protocol.events import SessionMode

_MODES: Final = "https://agentclientprotocol.com/protocol/session-modes#"
_IDS: Final = {"interactive": f"{_MODES}agent"}
MODES: Final[tuple[tuple[str, SessionMode, str, str], ...]] = tuple(
    (_IDS.get(name, f"{_MODES}{name}"), name, label, description) for name, label, description in shown.MODES
)
"""Id, mode of the session, name, description. Some editors know only these ids, which another agent uses."""

MODE, MODEL, EFFORT, PERMISSIONS = "mode", "model", "reasoning_effort", "allow_all"
DEFAULT: Final = "default"


class State(Struct, frozen=True):
    """The state that the options show. ``model`` is the model of the next turn, ``None`` where it is unknown."""

    mode: SessionMode
    model: str | None
    effort: str | None
    allow_all: bool
    models: Sequence[ModelInfo]
    booleans: bool = False
    """True if the editor supports boolean options."""


def mode_id(mode: SessionMode) -> str:
    """Return ACP's id of a mode."""
    return next(one_id for one_id, name, *_ in MODES if name == mode)


def mode_of(text: str) -> SessionMode | None:
    """Return the mode for an id, or for the id's last part, or for the name of the mode; else ``None``."""
    found: Iterator[SessionMode] = (
        name for one_id, name, *_ in MODES if text in (one_id, name, one_id.removeprefix(_MODES))
    )
    return next(found, None)


def modes_of(mode: SessionMode) -> dict[str, Any]:
    """Return ACP's ``SessionModeState``."""
    return {
        "currentModeId": mode_id(mode),
        "availableModes": [
            {"id": one_id, "name": name, "description": description} for one_id, _, name, description in MODES
        ],
    }


def options_of(state: State) -> list[dict[str, Any]]:
    """Return all options, in the order that editors show. Without known models there is no option for them."""
    options = [
        _select(
            MODE,
            "Mode",
            "mode",
            mode_id(state.mode),
            [_value(one_id, name, description) for one_id, _, name, description in MODES],
        )
    ]
    models = [_value(model.id, model.name or model.id) for model in state.models if model.enabled]
    if state.model is not None and all(choice["value"] != state.model for choice in models):
        models.insert(0, _value(state.model, state.model))
    if models:
        current = state.model if state.model is not None else models[0]["value"]
        options.append(_select(MODEL, "Model", "model", current, models))
    info = next((model for model in state.models if model.id == state.model), None)
    efforts = list(shown.EFFORTS if info is None or info.reasoning_efforts is None else info.reasoning_efforts)
    if state.effort is not None and state.effort not in efforts:
        efforts.append(state.effort)
    if efforts:
        levels = [_value(DEFAULT, "Default"), *(_value(effort, effort.capitalize()) for effort in efforts)]
        options.append(_select(EFFORT, shown.EFFORT, "thought_level", state.effort or DEFAULT, levels))
    options.append(_permissions(state))
    return options


def values_of(options: list[dict[str, Any]], config_id: str) -> list[str] | None:
    """Return the values of a select option, or ``None`` if there is no such option or it is a boolean."""
    option = next((option for option in options if option["id"] == config_id and option["type"] == "select"), None)
    return [choice["value"] for choice in option["options"]] if option is not None else None


def _permissions(state: State) -> dict[str, Any]:
    name, description = shown.ALLOW_ALL
    if state.booleans:
        return {
            "id": PERMISSIONS,
            "name": name,
            "description": description,
            "category": "_permissions",
            "type": "boolean",
            "currentValue": state.allow_all,
        }
    values = [_value("off", "Ask"), _value("on", name, description)]
    return _select(PERMISSIONS, "Permissions", "_permissions", "on" if state.allow_all else "off", values)


def _select(config_id: str, name: str, category: str, current: str, values: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": config_id,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": values,
    }


def _value(value: str, name: str, description: str | None = None) -> dict[str, Any]:
    option = {"value": value, "name": name}
    return {**option, "description": description} if description else option
