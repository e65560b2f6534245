"""``jumpseat.web.*``: what the page for browsers needs besides the methods of other clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class WebLoginParams(WireModel):
    """The origin of the page, such as ``http://127.0.0.1:4322``."""

    origin: str = Field(min_length=1, max_length=500)


class WebLoginResult(WireModel):
    """A login of a page, valid for ``expires_in_s`` seconds after its last use.

    The page proves that it has the ``key``, as ``docs/web.md`` describes, and sends it nowhere.
    """

    id: str
    key: str = Field(repr=False)
    expires_in_s: int


class WebDescribeParams(WireModel):
    """The ids of at most 200 sessions."""

    session_ids: list[str]


class SessionDescription(WireModel):
    """A session for a list.

    ``state``: ``working`` and ``idle`` sessions are open in this server, ``elsewhere`` in another process, and
    ``stored`` in none. ``open_questions`` counts those that wait for a person. ``clients`` is the number of
    attached clients, without the calling one. ``usage`` is by model: ``{requests: {count}, usage, costUsd?}``.
    """

    session_id: str
    state: Literal["working", "idle", "elsewhere", "stored"]
    open_questions: int = 0
    clients: int = 0
    model: str | None = None
    usage: dict[str, Any] = Field(default_factory=dict)


class WebDescribeResult(WireModel):
    """Unknown sessions are left out."""

    sessions: list[SessionDescription]


class ModelCallUsage(WireModel):
    """The usage of one model call. ``time`` is that of its end, in ISO 8601; ``purpose`` is ``turn`` for answers.

    ``context_window`` is the size of the context of the model, in tokens.
    """

    time: str
    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    duration_ms: int
    first_token_ms: int | None = None
    finish_reason: str | None = None
    context_window: int | None = None


class ModelCallsResult(WireModel):
    """The calls of a session that a server with a page has made, the latest last. Damaged entries are left out."""

    calls: list[ModelCallUsage]


class WebSearchParams(WireModel):
    """``text`` is a list of words, all of which must occur; at most 200 sessions are searched."""

    text: str = Field(min_length=1)
    session_ids: list[str]


class SessionMatch(WireModel):
    """A session with all words in its title, folder, prompts and answers, and an excerpt of the first place."""

    session_id: str
    excerpt: str


class WebSearchResult(WireModel):
    """The matches, in the order of the requested ids."""

    matches: list[SessionMatch]


class OpenQuestion(WireModel):
    """A question that waits for a person, with the ``type`` and ``data`` of its event."""

    type: str
    data: dict[str, Any]


class OpenQuestionsResult(WireModel):
    """Questions of models, plans, forms and switches of the model; permission requests have another method."""

    questions: list[OpenQuestion]


METHODS: Final[Mapping[str, Method]] = {
    "jumpseat.web.login": Method(WebLoginParams, WebLoginResult),
    "jumpseat.web.describe": Method(WebDescribeParams, WebDescribeResult),
    "jumpseat.web.modelCalls": Method(SessionParams, ModelCallsResult),
    "jumpseat.web.search": Method(WebSearchParams, WebSearchResult),
    "jumpseat.web.openQuestions": Method(SessionParams, OpenQuestionsResult),
}
