"""This replica: its parts, and whether requests about sessions can be served."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from jumpseat.cluster.nats.jetstream import JetStream
from jumpseat.cluster.nats.settings import ClusterSettings
from jumpseat.cluster.replicas.membership import Membership
from jumpseat.cluster.sessions.housekeeping import remove_expired_for_ever, remove_orphans_for_ever
from jumpseat.cluster.sessions.index import Index
from jumpseat.cluster.sessions.ownership import Ownerships
from jumpseat.cluster.sessions.store import ClusterStore
from jumpseat.errors import StoreError, StoreUnavailableError

log = logging.getLogger(__name__)

DISCONNECTED_S: Final = 2.0
"""Time without a connection to NATS after which requests about sessions are refused."""
STALLED_SHARE: Final = 5 / 12
"""Time that an append may take before requests are refused, as a share of the time that they wait for NATS."""
CHECK_S: Final = 0.5


class Replica:
    """The sessions of this replica. ``home`` has their working copies.

    ``on_lost`` is called with the id of a session that another replica has taken.
    """

    def __init__(
        self,
        stream: JetStream,
        settings: ClusterSettings,
        membership: Membership,
        home: Path,
        tasks: TaskGroup,
        on_lost: Callable[[str], None],
    ) -> None:
        self.stream = stream
        self.settings = settings
        self.membership = membership
        self.tasks = tasks
        self.index = Index(stream, tasks, home)
        self.ownerships = Ownerships(stream, membership, self.index, home, tasks, on_lost)
        self.store = ClusterStore(home, tasks, self.ownerships, self.index)
        self.relayed = 0
        """The number of requests sent to other replicas."""
        self._connected_s = time.monotonic()

    def start(self) -> None:
        """Begin to watch over the sessions."""
        self.tasks.start_soon(self._check)
        self.tasks.start_soon(remove_orphans_for_ever, self.stream, self.membership)
        if (retention_s := self.settings.retention_s) is not None:
            self.tasks.start_soon(remove_expired_for_ever, self.ownerships, self.membership, retention_s)

    @property
    def unavailable(self) -> bool:
        """Return whether requests about sessions have to be refused: NATS cannot be reached, or is too slow."""
        return (
            time.monotonic() - self._connected_s > DISCONNECTED_S
            or self.membership.cut_off
            or self.ownerships.stalled_s > self.settings.patience_s * STALLED_SHARE
        )

    async def wait_until_known(self) -> None:
        """Wait until the owners of this replica's sessions are looked up, as they are after each doubt about them.

        Raises:
            StoreUnavailableError: requests about sessions have to be refused, or NATS does not answer in time.
        """
        if not self.unavailable:
            with anyio.move_on_after(self.settings.patience_s):
                await self.membership.wait_until_certain()
        if self.unavailable or self.membership.doubtful:
            raise StoreUnavailableError

    async def _check(self) -> None:
        while True:
            if self.membership.doubtful and not self.membership.cut_off:
                # Another doubt may come while this replica looks.
                doubts = self.membership.doubts
                try:
                    await self.ownerships.check()
                    self.membership.settle(doubts)
                except StoreError as error:
                    log.info("the owners of sessions are not known yet: %s", error)
            self.ownerships.release_closed()
            if self.stream.connected:
                self._connected_s = time.monotonic()
            self.ownerships.give_up_stalled(self.settings.patience_s)
            await anyio.sleep(CHECK_S)
