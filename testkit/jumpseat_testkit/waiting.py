"""Wait for a message of a peer, but not for one that can no longer come.

A message that differs from the expected one is wrong once the peer rests: it has sent nothing for a while, and
either answered all that it was asked, or waits for the client's answer to the wrong message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import anyio

from jumpseat_testkit.patterns import Captures, Difference, differences
from jumpseat_testkit.target import Target

QUIET_S: Final = 1.0
"""How long a peer at rest may take for what nobody waits for, such as the end of a command in the background."""


async def wait_for(look: Callable[[], bool], target: Target, seconds: float, is_wrong: Callable[[], bool]) -> bool:
    """Wait until ``look()``, which is asked after new messages, for at most ``seconds`` or until the peer exits.

    Returns whether the wait has ended earlier, because the peer has sent nothing for :data:`QUIET_S` and
    ``is_wrong()``.
    """
    end = anyio.current_time() + seconds
    seen = -1

    def found_or_new() -> bool:
        return look() or len(target.traffic) != seen

    while not look() and not target.ended.is_set() and (left := end - anyio.current_time()) > 0:
        seen = len(target.traffic)
        if not await target.until(found_or_new, min(left, QUIET_S)) and is_wrong():
            return True
    return False


def near_misses(
    pattern: Any, values: Iterable[Any], captures: Captures, kind: str
) -> list[tuple[Any, list[Difference]]]:
    """Return the values of the pattern's kind that differ from it, the closest first, with the differences."""
    near = [
        (value, found)
        for value in values
        if value is not None
        if (found := differences(pattern, value, dict(captures)))
        and not any(one.path in (kind, "method", "id") for one in found)
    ]
    return sorted(near, key=lambda candidate: len(candidate[1]))
