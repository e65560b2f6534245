"""Validate messages against the protocol's JSON Schema: their types, not the server's behaviour."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from jumpseat_protocol.json_values import as_object
from jumpseat_protocol.schema import encoded


class SchemaChecks:
    """Report where messages of the server violate the schema; methods and events unknown to it are accepted."""

    def __init__(self) -> None:
        from jsonschema import Draft202012Validator

        self._schema = json.loads(encoded())
        self._validator = Draft202012Validator
        self._methods: dict[Any, str] = {}

    def sent(self, message: Any) -> None:
        """Remember the method of a request of the client, to validate the response to it."""
        if "method" in as_object(message) and "id" in message:
            self._methods[message["id"]] = message["method"]

    def received(self, message: Any) -> list[str]:
        """Return the schema violations in a message of the server, at most three."""
        fields = as_object(message)
        if "method" not in fields:
            method = self._methods.get(fields.get("id"), "") if isinstance(fields.get("id"), int | str) else ""
            if "error" in fields:
                return self._validate("error", fields["error"], f"{method} error")
            return self._validate(("clientRequests", method, "result"), fields.get("result"), f"{method} result")
        method = str(fields["method"])
        if "id" in fields:
            return self._validate(("serverRequests", method, "params"), fields.get("params"), f"{method} params")
        if method == "session.event":
            event = as_object(as_object(fields.get("params")).get("event"))
            return self._validate(("events", str(event.get("type"))), event, str(event.get("type")))
        return self._validate(("notifications", method), fields.get("params"), method)

    def _validate(self, path: tuple[str, ...] | str, value: Any, label: str) -> list[str]:
        node: Any = self._schema
        for name in (path,) if isinstance(path, str) else path:
            properties = as_object(as_object(node).get("properties"))
            if name not in properties:
                return []
            node = properties[name]
        # The type stubs of jsonschema refer to a package that may not be installed.
        validator: Any = self._validator({**as_object(node), "$defs": self._schema["$defs"]})
        return [
            f"{label}: {error.json_path.removeprefix('$').lstrip('.') or '(root)'}: {error.message[:200]}"
            for error in islice(validator.iter_errors(value), 3)
        ]
