"""The rules of JSON-RPC that hold in every conversation, whatever a script expects.

:class:`Rules` observes all messages of one connection, in both directions, and reports violations. It does no I/O
and knows nothing of scripts, so it can observe any conversation. The rules of a protocol are a subclass.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, TypeAlias, cast

JsonObject: TypeAlias = dict[str, Any]


class Rules:
    """Check the messages of one connection.

    Pass all messages to :meth:`sent` and :meth:`received` in the order of the conversation. :meth:`received` and
    :meth:`find_unfinished` return the violations, one sentence each.
    """

    NOTIFICATIONS: ClassVar[Collection[str]] = ()
    """Methods of the server that must not have an id."""

    def __init__(self) -> None:
        # The methods of the client's requests, by id.
        self._requests: dict[Any, str] = {}
        self._answered: set[Any] = set()
        self._server_request_ids: set[Any] = set()
        self._settled_ids: set[Any] = set()

    @property
    def busy(self) -> list[str]:
        """The ids of the sessions with a prompt that has not ended."""
        return []

    @property
    def at_rest(self) -> bool:
        """Whether the server has answered all requests, and no prompt runs."""
        return not self.busy and self._requests.keys() <= self._answered

    def asks(self, message: Any) -> bool:
        """Decide whether a message of the server is a question that the client has not answered."""
        fields = as_fields(message)
        return "method" in fields and "id" in fields and request_key(fields["id"]) not in self._settled_ids

    def sent(self, message: Any) -> None:
        """Record a message of the client."""
        fields = as_fields(message)
        method = fields.get("method")
        if isinstance(method, str):
            key = request_key(fields["id"]) if "id" in fields else None
            if key is not None:
                self._requests[key] = method
            self.on_sent(method, key, as_fields(fields.get("params")))
        elif "id" in fields:
            self._settled_ids.add(request_key(fields["id"]))

    def received(self, message: Any) -> list[str]:
        """Return the violations in a message of the server."""
        if not isinstance(message, dict):
            return ["expected every message to be a JSON object"]
        fields = cast("JsonObject", message)
        problems = [] if fields.get("jsonrpc") == "2.0" else ['message without "jsonrpc": "2.0"']
        if "method" not in fields:
            return problems + self._check_response(fields)
        method = fields["method"]
        if not isinstance(method, str):
            return [*problems, f"expected the method to be a string, got {method!r}"]
        if "result" in fields or "error" in fields:
            problems.append(f"{method}: a request must not have a result or an error")
        if "id" in fields:
            key = request_key(fields["id"])
            if method in self.NOTIFICATIONS:
                problems.append(f"{method}: a notification must not have an id")
            if key in self._server_request_ids:
                problems.append(f"{method}: the id {fields['id']!r} was used by an earlier request of the server")
            self._server_request_ids.add(key)
            problems += self.on_request(method, fields.get("params"))
        else:
            problems += self.on_notification(method, fields.get("params"))
        return problems

    def find_unfinished(self) -> list[str]:
        """Return what is missing at the end of the conversation."""
        return [
            f"request {key[1]!r} ({method}) was never answered"
            for key, method in self._requests.items()
            if key not in self._answered
        ]

    # --- the rules of a protocol --------------------------------------------------------------------------------

    def on_sent(self, method: str, key: Any, params: JsonObject) -> None:
        """Record a request of the client, or a notification, for which ``key`` is ``None``."""

    def on_request(self, method: str, params: Any) -> list[str]:
        """Return the violations in a request of the server."""
        del method, params
        return []

    def on_notification(self, method: str, params: Any) -> list[str]:
        """Return the violations in a notification of the server."""
        del method, params
        return []

    def on_response(self, method: str, key: Any, fields: JsonObject) -> list[str]:
        """Return the violations in the first response to a request of the client."""
        del method, key, fields
        return []

    # --- responses ----------------------------------------------------------------------------------------------

    def _check_response(self, fields: JsonObject) -> list[str]:
        if "id" not in fields:
            return ["expected a request, a notification or a response, got a message without method and id"]
        request_id = fields["id"]
        label = f"response to {request_id!r}"
        problems: list[str] = []
        if ("result" in fields) == ("error" in fields):
            problems.append(
                f"{label}: expected a result or an error, got {'both' if 'result' in fields else 'neither'}"
            )
        if "error" in fields:
            problems += _check_error(label, fields["error"])
        key = request_key(request_id)
        if request_id is None and "error" in fields:
            # JSON-RPC: the error for a message that could not be parsed has no id.
            return problems
        if key not in self._requests:
            similar = next((other[1] for other in self._requests if str(other[1]) == str(request_id)), None)
            hint = f"; the id {similar!r} was sent, which is of another type" if similar is not None else ""
            problems.append(f"{label}: no request has this id{hint}")
        elif key in self._answered:
            problems.append(f"{label} ({self._requests[key]}): the request was already answered")
        else:
            self._answered.add(key)
            problems += self.on_response(self._requests[key], key, fields)
        return problems


def _check_error(label: str, error: Any) -> list[str]:
    fields = as_fields(error)
    code, message = fields.get("code"), fields.get("message")
    if isinstance(code, int) and not isinstance(code, bool) and isinstance(message, str):
        return []
    return [f"{label}: expected an error with an integer code and a string message, got {error!r:.200}"]


def as_fields(value: Any) -> JsonObject:
    """Return an object as it is, and an empty one in the place of any other value."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def request_key(request_id: Any) -> Any:
    """Return ``request_id`` as a hashable key that keeps ``1``, ``"1"`` and ``True`` apart."""
    return (type(request_id).__name__, request_id if isinstance(request_id, int | str) else repr(request_id))
