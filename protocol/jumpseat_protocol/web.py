"""``jumpseat.web.*``: what the page for browsers needs besides the methods of other clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class WebLoginParams(WireModel):
    """The origin of the page, such as ``http://127.0.0.1:4322``."""

    origin: str = Field(min_length=1, max_length=500)
    """The origin of the page."""


class WebLoginResult(WireModel):
    """A login of a page, valid for ``expires_in_s`` seconds after its last use.

    The page proves that it has the ``key``, as ``docs/web.md`` describes, and sends it nowhere.
    """

    id: str
    """The id of the login."""
    key: str = Field(repr=False)
    """The key that the page proves to have."""
    expires_in_s: int
    """How long the login is good without use, in seconds."""


class WebLogoutParams(WireModel):
    """The id of a login, as ``jumpseat.web.login`` has returned it."""

    id: str = Field(min_length=1, max_length=64)
    """The id of the login."""


class WebLogoutResult(WireModel):
    """``removed`` is false if there was no such login."""

    removed: StrictBool
    """Whether there was such a login."""


class WebDescribeParams(WireModel):
    """The ids of at most 200 sessions. With ``open_too``, those that are open in the server are added."""

    session_ids: list[str]
    """The ids of the sessions."""
    open_too: StrictBool = False
    """Whether to describe the sessions that are open in this server, too."""


class SessionDescription(WireModel):
    """A session for a list.

    ``state``: ``working`` and ``idle`` sessions are open in this server, ``elsewhere`` in another process, and
    ``stored`` in none. ``open_questions`` counts those that wait for a person. ``clients`` is the number of
    attached clients, without the calling one. ``usage`` is by model: ``{requests: {count}, usage, costUsd?}``.
    ``title`` is the name of the session, otherwise its first prompt, shortened, also while that runs.
    """

    session_id: str
    state: Literal["working", "idle", "elsewhere", "stored"]
    """Where the session is open."""
    open_questions: int = 0
    """How many questions wait for a person."""
    clients: int = 0
    """How many clients are attached."""
    model: str | None = None
    """The id of its model."""
    title: str | None = None
    """Its name, or its first prompt, shortened."""
    usage: dict[str, Any] = Field(default_factory=dict)
    """What it has used."""


class WebDescribeResult(WireModel):
    """Unknown sessions are left out."""

    sessions: list[SessionDescription]
    """The sessions."""


class ModelCallUsage(WireModel):
    """The usage of one model call. ``time`` is that of its end, in ISO 8601; ``purpose`` is ``turn`` for answers.

    ``context_window`` is the size of the context of the model, in tokens.
    """

    time: str
    """When the call ended."""
    purpose: str
    """What the call was for."""
    model: str
    """The id of the model."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """The tokens of reasoning among the output."""
    cost_usd: float | None = None
    """The price of the call in US dollars, if it is known."""
    duration_ms: int
    first_token_ms: int | None = None
    """How long the first token took, in milliseconds."""
    finish_reason: str | None = None
    """Why the answer ended."""
    context_window: int | None = None
    """The size of the model's context, in tokens."""
    agent_id: str | None = None
    """The sub-agent that made the call; null for the agent of the session."""


class ModelCallsResult(WireModel):
    """The calls of a session, also those of earlier servers, the latest last. Damaged entries are left out."""

    calls: list[ModelCallUsage]
    """The calls, the latest last."""


class WebSearchParams(WireModel):
    """``text`` is a list of words, all of which must occur; at most 200 sessions are searched."""

    text: str = Field(min_length=1)
    """The words to search for."""
    session_ids: list[str]
    """The ids of the sessions to search."""


class SessionMatch(WireModel):
    """A session with all words in its title, folder, prompts and answers, and an excerpt of the first place.

    ``event_id`` is the prompt or answer that the excerpt is from, and left out if it is from the title or folder.
    """

    session_id: str
    excerpt: str
    """The text around the first place."""
    event_id: str | None = None
    """The id of the prompt or answer that the excerpt is from."""


class WebSearchResult(WireModel):
    """The matches, in the order of the requested ids."""

    matches: list[SessionMatch]
    """The sessions that match."""


class OpenQuestion(WireModel):
    """A question that waits for a person, with the ``type`` and ``data`` of its event."""

    type: str
    data: dict[str, Any]
    """The question, as in its event."""


class OpenQuestionsResult(WireModel):
    """Questions of models, plans, forms and switches of the model; permission requests have another method."""

    questions: list[OpenQuestion]
    """The questions."""


class WebDraftResult(WireModel):
    """The prompt that a person has begun to write in a session. ``attachments`` are as a page has stored them."""

    text: str
    """The text; empty if there is none."""
    attachments: list[dict[str, Any]]
    """The attachments, as a page has stored them."""


class WebSaveDraftParams(WireModel):
    """The prompt that a person has begun to write: ``text``, and ``attachments`` if these have changed."""

    session_id: str
    text: str = Field(repr=False)
    """The text; empty to remove it."""
    attachments: list[dict[str, Any]] | None = Field(default=None, repr=False)
    """The attachments, if they have changed; the server does not interpret them."""


class WebSaveDraftResult(WireModel):
    """``stored`` is false for a text with a known secret, and for a session in the storage of a client."""

    stored: StrictBool
    """Whether the draft is stored."""


class WebUsageParams(WireModel):
    """``days`` is the number of days before the current one."""

    days: int = Field(default=30, ge=0, le=366)
    """How many days before the current one."""


class DayUsage(WireModel):
    """The usage of one model on a day, such as ``2026-01-31``, of the local calendar of the server.

    ``cost_usd`` is left out if no price is known.
    """

    day: str
    """The day, as ``2026-01-31``."""
    model: str
    """The id of the model."""
    calls: int
    """How many calls of the model there were."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    """The price in US dollars, if it is known."""


class WebUsageResult(WireModel):
    """The usage of all sessions that the server stores, the latest day first."""

    usage: list[DayUsage]
    """The usage of each day and model."""


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.web.login": Method(WebLoginParams, WebLoginResult, "Return a login for a page."),
    "jumpseat.web.logout": Method(WebLogoutParams, WebLogoutResult, "Remove a login of a page."),
    "jumpseat.web.describe": Method(WebDescribeParams, WebDescribeResult, "Describe sessions for a list."),
    "jumpseat.web.modelCalls": Method(SessionParams, ModelCallsResult, "Return the model calls of a session."),
    "jumpseat.web.search": Method(WebSearchParams, WebSearchResult, "Search sessions for words."),
    "jumpseat.web.openQuestions": Method(
        SessionParams, OpenQuestionsResult, "Return the questions that wait for a person."
    ),
    "jumpseat.web.draft": Method(
        SessionParams, WebDraftResult, "Return the prompt that a person has begun to write."
    ),
    "jumpseat.web.saveDraft": Method(
        WebSaveDraftParams, WebSaveDraftResult, "Store the prompt that a person has begun to write."
    ),
    "jumpseat.web.usage": Method(
        WebUsageParams, WebUsageResult, "Return the tokens and the cost of all sessions by day and model."
    ),
}
