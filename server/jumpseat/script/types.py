"""The protocol's schema as a judge of messages: types, not behaviour."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from jumpseat.adapters.wire import as_object
from jumpseat_protocol.schema import encoded


class TypeChecks:
    """Says where a message of the server does not fit the schema; what the schema does not know, it lets pass."""

    def __init__(self) -> None:
        from jsonschema import Draft202012Validator

        self._schema = json.loads(encoded())
        self._validator = Draft202012Validator
        self._asked: dict[Any, str] = {}

    def sent(self, message: Any) -> None:
        """Remember what was asked, for its answer."""
        if "method" in as_object(message) and "id" in message:
            self._asked[message["id"]] = message["method"]

    def received(self, message: Any) -> list[str]:
        """What is wrong with the types of a message."""
        said = as_object(message)
        if "method" not in said:
            method = self._asked.get(said.get("id"), "") if isinstance(said.get("id"), int | str) else ""
            if "error" in said:
                return self._judge("error", said["error"], f"{method} error")
            return self._judge(("clientRequests", method, "result"), said.get("result"), f"{method} result")
        method = str(said["method"])
        if "id" in said:
            return self._judge(("serverRequests", method, "params"), said.get("params"), f"{method} params")
        if method == "session.event":
            event = as_object(as_object(said.get("params")).get("event"))
            return self._judge(("events", str(event.get("type"))), event, str(event.get("type")))
        return self._judge(("notifications", method), said.get("params"), method)

    def _judge(self, spot: tuple[str, ...] | str, value: Any, what: str) -> list[str]:
        node: Any = self._schema
        for step in (spot,) if isinstance(spot, str) else spot:
            properties = as_object(as_object(node).get("properties"))
            if step not in properties:
                return []
            node = properties[step]
        # The types of jsonschema name a package that need not be there.
        validator: Any = self._validator({**as_object(node), "$defs": self._schema["$defs"]})
        return [
            f"{what}: {error.json_path.removeprefix('$').lstrip('.') or 'the whole'}: {error.message[:200]}"
            for error in islice(validator.iter_errors(value), 3)
        ]
