"""Causes faults in a cluster: kills, pauses, drains and cut connections, each repaired after a while."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TextIO, TypeAlias

import anyio
from anyio.abc import TaskGroup

from tests.cluster.balanced import BalancedReplicas, Replica
from tests.support.nats import Nats, Node

AHEAD: Final = 8
"""The number of faults of which the first possible one comes next."""
LONGEST_S: Final = 25.0
QUIET_S: Final = 8.0
"""Time between faults of servers of NATS: without a break for an election, sessions could do nothing at all."""

Repair: TypeAlias = Callable[[], Awaitable[None]]
Fault: TypeAlias = Callable[[], Awaitable[bool]]
"""Causes a fault; returns ``False`` if that is not possible at the moment."""


class Nemesis:
    """Causes faults, several at a time; at most one server of NATS is away, and one replica always serves.

    ``most_s`` limits the time until a fault is repaired.
    """

    def __init__(
        self,
        nats: Nats,
        replicas: BalancedReplicas,
        tasks: TaskGroup,
        choose: random.Random,
        pause_s: float,
        log: TextIO,
        most_s: float = LONGEST_S,
    ) -> None:
        self.faults: Counter[str] = Counter()
        self._nats = nats
        self._replicas = replicas
        self._tasks = tasks
        self._choose = choose
        self._pause_s = pause_s
        self._log = log
        self._most_s = most_s
        self._busy: set[Replica] = set()
        self._nats_is_hurt = False
        self._repairs = 0
        # Set after each repair.
        self._news = anyio.Event()
        self._choices: dict[str, tuple[int, Fault]] = {
            "kill replica": (8, self._kill_replica),
            "drain replica": (3, self._drain_replica),
            "pause replica": (4, self._pause_replica),
            "kill NATS": (3, self._kill_nats),
            "pause NATS": (1, self._pause_nats),
            "kill both": (2, self._kill_both),
            "cut clients": (2, self._cut_clients),
            "cut a replica off": (4, self._cut_off),
        }

    def any_faults(self, number: int) -> list[str]:
        """Return the names of faults of all kinds, chosen at random."""
        return self._choose.choices(list(self._choices), [weight for weight, _ in self._choices.values()], k=number)

    async def cause(self, names: Iterable[str], limit_s: float = math.inf) -> None:
        """Cause faults for ``limit_s`` at most; returns when they are repaired.

        A fault that is not possible at the moment lets some of the next ones come first.
        """
        until_s = anyio.current_time() + limit_s
        left = list(names)
        while left and anyio.current_time() < until_s:
            news = self._news
            for place, name in enumerate(left[:AHEAD]):
                if await self._choices[name][1]():
                    del left[place]
                    self.faults[name] += 1
                    await anyio.sleep(self._choose.expovariate(1 / self._pause_s))
                    break
            else:
                await news.wait()
        while self._repairs:
            await self._news.wait()

    def note(self, what: str) -> None:
        """Write a line with the time to the log."""
        self._log.write(f"{time.time():.3f} {what}\n")
        self._log.flush()

    def _repair_later(self, repair: Repair, delay_s: float) -> None:
        async def work() -> None:
            await anyio.sleep(min(delay_s, self._most_s))
            await repair()
            self._repairs -= 1
            self._news.set()
            self._news = anyio.Event()

        self._repairs += 1
        self._tasks.start_soon(work)

    # --- replicas -------------------------------------------------------------------------------------------------

    def _take(self, what: str) -> Replica | None:
        """Return a replica without a fault, which has one until it is given back; never the last one."""
        free = [replica for replica in self._replicas.running() if replica not in self._busy]
        if len(free) < 2:
            return None
        replica = self._choose.choice(free)
        self._busy.add(replica)
        self.note(f"{what} {replica.name} (life {replica.lives})")
        return replica

    def _give_back(self, replica: Replica) -> None:
        self._busy.discard(replica)
        self.note(f"{replica.name} (life {replica.lives}) is back")

    async def _kill_replica(self) -> bool:
        if (replica := self._take("kill")) is None:
            return False
        await replica.kill()

        async def start() -> None:
            await replica.start()
            self._give_back(replica)

        self._repair_later(start, self._choose.uniform(0, 3))
        return True

    async def _drain_replica(self) -> bool:
        if (replica := self._take("drain")) is None:
            return False

        async def restart() -> None:
            await replica.terminate()
            await replica.start()
            self._give_back(replica)

        self._repair_later(restart, 0)
        return True

    async def _pause_replica(self) -> bool:
        if (replica := self._take("pause")) is None:
            return False
        replica.pause()

        async def wake() -> None:
            replica.unpause()
            self._give_back(replica)

        self._repair_later(wake, self._choose.choice([0.5, 2, 5, 18, LONGEST_S]))
        return True

    async def _cut_off(self) -> bool:
        """Cut a replica off from NATS for a while."""
        if (replica := self._take("cut off")) is None:
            return False
        replica.nats.accepts = False
        replica.nats.cut()

        async def connect() -> None:
            replica.nats.accepts = True
            self._give_back(replica)

        self._repair_later(connect, self._choose.choice([0, 0.5, 3, 20]))
        return True

    async def _cut_clients(self) -> bool:
        self.note("cut all clients")
        self._replicas.balancer.cut()
        return True

    # --- servers of NATS ------------------------------------------------------------------------------------------

    async def _kill_nats(self) -> bool:
        return self._hurt_nats(kill=True)

    async def _pause_nats(self) -> bool:
        return self._hurt_nats(kill=False)

    async def _kill_both(self) -> bool:
        if self._nats_is_hurt or not await self._kill_replica():
            return False
        return self._hurt_nats(kill=True)

    def _hurt_nats(self, *, kill: bool) -> bool:
        if self._nats_is_hurt:
            return False
        self._nats_is_hurt = True
        node = self._choose.choice(self._nats.nodes)
        self.note(f"{'kill' if kill else 'pause'} {node.name} of NATS")
        if kill:
            node.kill()
        else:
            node.pause()
        self._repair_later(lambda: self._bring_back(node, killed=kill), self._choose.choice([0.2, 2, 8]))
        return True

    async def _bring_back(self, node: Node, *, killed: bool) -> None:
        if killed:
            node.start()
        else:
            node.unpause()
        await self._nats.wait_until_ready()
        self.note(f"{node.name} of NATS is back")
        await anyio.sleep(min(QUIET_S, self._most_s))
        self._nats_is_hurt = False
