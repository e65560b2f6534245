"""Requests of servers to a model (sampling) or to the user (elicitation), forwarded to the session's clients."""

from __future__ import annotations

import logging
from typing import Any, Final, cast

import anyio
import mcp.types as types
from msgspec import Struct
from pydantic import ValidationError

from jumpseat.agent.pending import PendingRequests
from jumpseat.agent.session.elicitation import elicit
from jumpseat.agent.session.session import Session
from jumpseat.errors import InvalidRequestError
from jumpseat.mcp.results import as_json
from jumpseat_protocol import events
from jumpseat_protocol.visible import plain_url

log = logging.getLogger(__name__)

PERSON_S: Final = 900.0
"""Time-out of a request that a person answers."""

REJECTED: Final = -1
"""Error code of the specification for a request that the user has rejected."""


class Sampling(Struct, frozen=True):
    """A sampling request of ``server``; ``request`` holds its parameters in the form of MCP."""

    server: str
    mcp_request_id: types.RequestId
    request: dict[str, Any]


class Questions:
    """The open requests of one session's servers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Each is answered with an MCP result, or with None.
        self.samplings = PendingRequests[Sampling, dict[str, Any] | None]()

    def close(self) -> None:
        """Reject all open sampling requests."""
        self.samplings.close_all(None)

    async def sample(
        self, server: str, request_id: types.RequestId, params: types.CreateMessageRequestParams
    ) -> Any:
        """Let a client decide on a sampling request and answer it; return an MCP result or error.

        Without a client that is interested in such requests, the result is an error.
        """
        session = self._session
        if not session.clients.has_interest("sampling.requested"):
            return _refusal("sampling is not available: no client of the session handles sampling requests")
        pending = self.samplings.ask(Sampling(server, request_id, as_json(params)))
        answer: dict[str, Any] | None = None
        try:
            session.emit(
                events.SamplingRequested(
                    request_id=pending.id,
                    server_name=server,
                    mcp_request_id=request_id,
                    request=pending.question.request,
                )
            )
            with anyio.move_on_after(PERSON_S):
                answer = await pending.answer()
        finally:
            self.samplings.close(pending)
            session.emit(events.SamplingCompleted(request_id=pending.id))
        if answer is None:
            return types.ErrorData(code=REJECTED, message="the user rejected the sampling request")
        try:
            return types.CreateMessageResult.model_validate(answer)
        except ValidationError:
            return _refusal("the client's answer to the sampling request is not a valid message")

    async def elicit(self, server: str, params: types.ElicitRequestParams) -> Any:
        """Show a form or the address of a page to the user; return an MCP result or error."""
        schema: dict[str, Any] = {}
        url: str | None = None
        if isinstance(params, types.ElicitRequestURLParams):
            if not params.url.startswith(("https://", "http://")):
                return _refusal("the URL of an elicitation must begin with https:// or http://")
            try:
                url = plain_url(params.url)
            except ValueError as error:
                return _refusal(f"the URL of an elicitation is invalid: {error}")
        else:
            schema = params.requested_schema
        result = None
        try:
            with anyio.move_on_after(PERSON_S):
                result = await elicit(self._session, params.message, schema, source=server, url=url)
        except InvalidRequestError as error:
            return _refusal(str(error))
        if result is None:
            return types.ElicitResult(action="cancel")
        try:
            content = result.content
            if result.action == "accept" and url is None:
                content = {**_defaults(schema), **(content or {})}
            return types.ElicitResult.model_validate({"action": result.action, "content": content})
        except ValidationError:
            return _refusal("the client's answer is not a valid elicitation result")


def _defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the default values of a form, which apply to fields that an accepted form leaves out."""
    fields = cast("dict[str, Any]", schema.get("properties") or {})
    return {
        name: field["default"] for name, field in fields.items() if isinstance(field, dict) and "default" in field
    }


def _refusal(text: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=text)
