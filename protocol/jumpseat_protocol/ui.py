"""``session.ui.*``: questions to the user, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field, StrictBool

from jumpseat_protocol.callbacks import ElicitationResult, ExitPlanModeResponse, UserInputResponse
from jumpseat_protocol.event_log import InterestResult, ReleaseInterestParams
from jumpseat_protocol.events import AutoModeSwitchAnswer
from jumpseat_protocol.server import SuccessResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class ElicitationParams(WireModel):
    """``requested_schema`` is a JSON Schema of an object whose fields are not nested."""

    session_id: str
    message: str
    """What is asked for."""
    requested_schema: dict[str, Any]
    """The JSON Schema of the form."""


class HandlePendingElicitationParams(WireModel):
    session_id: str
    request_id: str
    result: ElicitationResult
    """The answer."""


class UnregisteredResult(WireModel):
    """``unregistered`` is false if there was no such registration."""

    unregistered: StrictBool
    """Whether there was such a registration."""


class EphemeralQueryParams(WireModel):
    """A question beside the conversation."""

    session_id: str
    question: str = Field(min_length=1)
    """The question."""


class EphemeralQueryResult(WireModel):
    answer: str
    """The answer."""


class HandlePendingUserInputParams(WireModel):
    session_id: str
    request_id: str
    response: UserInputResponse
    """The answer."""


class HandlePendingExitPlanModeParams(WireModel):
    session_id: str
    request_id: str
    response: ExitPlanModeResponse
    """The decision."""


class HandlePendingAutoModeSwitchParams(WireModel):
    session_id: str
    request_id: str
    response: AutoModeSwitchAnswer
    """The decision."""


METHODS: Final[Mapping[str, Method]] = {
    "session.ui.registerDirectAutoModeSwitchHandler": Method(
        SessionParams, InterestResult, "Say that the client decides about another model when one is rate limited."
    ),
    "session.ui.unregisterDirectAutoModeSwitchHandler": Method(
        ReleaseInterestParams, UnregisteredResult, "Remove such a registration."
    ),
    "session.ui.handlePendingAutoModeSwitch": Method(
        HandlePendingAutoModeSwitchParams, SuccessResult, "Decide about another model."
    ),
    "session.ui.handlePendingExitPlanMode": Method(
        HandlePendingExitPlanModeParams, SuccessResult, "Decide about a plan."
    ),
    "session.ui.handlePendingUserInput": Method(
        HandlePendingUserInputParams, SuccessResult, "Answer a question of the model."
    ),
    "session.ui.ephemeralQuery": Method(
        EphemeralQueryParams, EphemeralQueryResult, "Ask the model something beside the conversation."
    ),
    "session.ui.elicitation": Method(ElicitationParams, ElicitationResult, "Show a form to people."),
    "session.ui.handlePendingElicitation": Method(HandlePendingElicitationParams, SuccessResult, "Answer a form."),
}
