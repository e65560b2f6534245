"""The fixtures of :mod:`jumpseat_testkit.pytest_plugin`, which jumpseat brings with it: in a ``conftest.py``::

pytest_plugins = ["jumpseat.testing"]
"""

from jumpseat_testkit.pytest_plugin import (
    ModelServer,
    Outcome,
    ScriptFailedError,
    ScriptFile,
    ScriptItem,
    Target,
    agent_server,
    assert_events,
    faulty_client,
    faulty_server,
    jumpseat_server,
    play_script,
    pytest_collect_file,
    scripted_model,
)

__all__ = [
    "ModelServer",
    "Outcome",
    "ScriptFailedError",
    "ScriptFile",
    "ScriptItem",
    "Target",
    "agent_server",
    "assert_events",
    "faulty_client",
    "faulty_server",
    "jumpseat_server",
    "play_script",
    "pytest_collect_file",
    "scripted_model",
]
