"""The table of the methods of version 2, which is a draft: see :mod:`jumpseat.acp.draft`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jumpseat.acp.methods import authenticate, draft
from jumpseat.acp.translation import params as p
from jumpseat.acp.v1_routes import NOTIFICATIONS as V1_NOTIFICATIONS
from jumpseat.acp.v1_routes import REQUESTS as V1_REQUESTS
from jumpseat.acp.v1_routes import Notified, Route

_GONE: Final = frozenset(
    ("authenticate", "logout", "session/load", "session/set_mode", "session/set_model", "session/resume")
)
"""The methods of version 1 that version 2 does not have, or has in another form."""

REQUESTS: Final[Mapping[str, Route]] = {
    **{method: route for method, route in V1_REQUESTS.items() if method not in _GONE},
    "auth/login": Route(p.AuthenticateParams, authenticate.authenticate),
    "auth/logout": Route(p.Nothing, authenticate.logout),
    "session/prompt": Route(p.PromptParams, draft.prompt),
    "session/resume": Route(p.ResumeParams, draft.resume),
}

NOTIFICATIONS: Final[Mapping[str, Notified]] = {
    **V1_NOTIFICATIONS,
    "session/cancel": Notified(p.SessionParams, draft.cancel),
}
