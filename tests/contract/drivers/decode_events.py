"""Decode the events on stdin with the official Python SDK and print the decoded events as JSON.

Runs in the virtual environment of one SDK version and imports no code of jumpseat.
"""
# pyright: basic, reportMissingImports=false
# The SDK lives in a virtual environment of its own, where the type checker does not look.

import json
import sys
import traceback
from importlib.metadata import version

from copilot.generated.session_events import SessionEventType, session_event_from_dict


def decoded(event):
    try:
        return {"event": session_event_from_dict(event).to_dict()}
    except Exception:
        return {"failure": traceback.format_exc(limit=-3)}


print(
    json.dumps(
        {
            "sdk": version("github-copilot-sdk"),
            "known_types": [event_type.value for event_type in SessionEventType],
            "decoded": [decoded(event) for event in json.load(sys.stdin)],
        },
        default=str,
    )
)
