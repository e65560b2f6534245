"""docs/session-fs.md names the requests that a client with a file system gets."""

from __future__ import annotations

import re
from pathlib import Path

from jumpseat_protocol.server_requests import SERVER_REQUESTS

PAGE = Path(__file__).parents[2] / "docs" / "session-fs.md"


def test_the_page_names_each_request_and_its_params() -> None:
    rows = re.findall(r"^\| (`sessionFs\.[^|]*) \| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    named = {
        name: set(re.findall(r"\w+", params.partition(":")[0]))
        for names, params in rows
        for name in re.findall(r"`([\w.]+)`", names)
    }
    requests = {name: method for name, method in SERVER_REQUESTS.items() if name.startswith("sessionFs.")}
    assert named.keys() == requests.keys()
    for name, method in requests.items():
        fields = {field.alias or field_name for field_name, field in method.params.model_fields.items()}
        assert named[name] == (fields - {"sessionId", "params"} or {"nothing"}), name
