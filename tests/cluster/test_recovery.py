"""What the log and the stored ends of runs tell about the last run, whenever its replica was killed."""

from __future__ import annotations

from jumpseat.cluster.sessions.recovery import LastRun
from tests.support.cases import check_each

RUN = ["user.message", "assistant.turn_start", "assistant.message", "assistant.turn_end", "session.idle"]
CALL = ["user.message", "assistant.turn_start", "call", "tool.execution_start"]


def last_run(kinds: list[str]) -> tuple[bool, bool, bool]:
    """Return whether a run has more to do, whether a turn of it is open, and whether its end is stored."""
    run = LastRun()
    data = {"user.message": {"delivery": "idle"}, "call": {"toolRequests": [{"toolCallId": "1"}]}}
    run.read(
        {"type": "assistant.message" if kind == "call" else kind, "data": data.get(kind, {"turnId": "0"})}
        for kind in kinds
    )
    return run.is_open, run.open_turn is not None, run.has_ended


def test_a_run_is_interrupted_completed_or_left_alone_by_what_is_stored_of_it() -> None:
    steering = ["user.message", "assistant.turn_start", "assistant.message"]
    cases = {
        "nothing": (RUN[:0], (False, False, True)),
        "a whole run": (RUN, (False, False, True)),
        "an accepted prompt": ([*RUN, *RUN[:1]], (True, False, False)),
        "a turn without an answer": (RUN[:2], (True, True, False)),
        "a call that runs": ([*RUN, *CALL], (True, True, False)),
        "a turn after which the model is called again": ([*CALL, "assistant.turn_end"], (True, False, False)),
        "all turns, and no end": (RUN[:4], (False, False, False)),
        "an abort, and no end": ([*CALL, "abort"], (False, False, False)),
        "a failure, and its end": ([*CALL, "session.error", "session.idle"], (False, False, True)),
        "a prompt that steers": ([*RUN[:4], *steering], (True, True, False)),
    }

    def check(case: tuple[list[str], tuple[bool, bool, bool]]) -> None:
        kinds, expected = case
        assert last_run(kinds) == expected

    check_each(cases, check)
