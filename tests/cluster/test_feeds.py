"""The events of a session that moves between owners, as its client gets them: whatever overtakes whatever."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpseat.cluster.relay.event_feed import Feed
from jumpseat.cluster.sessions.missed_events import RunEnds, Seen, last_id, missed, with_ends
from jumpseat.rpc.connection import Connection
from jumpseat_protocol import events
from jumpseat_protocol.events import Event

JsonObject = dict[str, Any]
SESSION: Final = "s"


class Receiver(Connection):
    """A connection without a transport, which sends the events that its gate admits."""

    def __init__(self, send: Callable[[JsonObject], None]) -> None:
        self.door: str | None = None
        self.gates: dict[str, Callable[[Event], bool]] = {}
        self.send_here = send

    def deliver(self, session_id: str, event: Event) -> None:
        if self.gates[session_id](event):
            self.send_here(event.wire())

    def deliver_encoded(self, session_id: str, event: bytes) -> None:
        self.send_here(orjson.loads(event))


class Link:
    """The way from an owner to the client: a connection between replicas, or none if the owner is the client's."""

    def __init__(self, world: World, owner: Owner, *, here: bool) -> None:
        self.owner = owner
        self.here = here
        self.attached = False
        self.under_way: deque[tuple[str, Any]] = deque()
        self.receiver = world.client if here else Receiver(lambda event: self.under_way.append(("event", event)))
        self.feed = world.feed if here else Feed(self.receiver, SESSION)

    def tell(self, number: int, seen: Seen | None) -> None:
        if not self.here:
            self.under_way.append(("begins", (number, seen)))


class Owner:
    """An owner with its working copy of the log, and the queue of what is to be stored and announced."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.records = [item for item in world.stored if item["type"] != "session.idle"]
        self.ends = [item for item in world.stored if item["type"] == "session.idle"]
        self.announced: str = world.stored[-1]["id"]
        self.queue: list[Event | Callable[[], None]] = []
        self.in_stream = 0
        """The number of first items of the queue that need not be stored any more."""
        self.links: list[Link] = []

    @property
    def items(self) -> list[JsonObject]:
        return with_ends(self.records, self.ends)

    def emit(self, kind: str) -> None:
        payload: events.EventPayload
        match kind:
            case "idle":
                payload = events.SessionIdle(mode="interactive")
            case "delta":
                payload = events.AssistantIdle()
            case _:
                payload = events.SessionWarning(warning_type="x", message="x")
        event = Event.of(f"{kind}-{next(self.world.numbers)}", "", self.records[-1]["id"], payload)
        if kind == "idle":
            self.ends.append(event.wire())
        elif kind == "stored":
            self.records.append(event.wire())
        self.queue.append(event)

    def store(self) -> None:
        """Store one message, unless another owner has taken over."""
        while self.in_stream < len(self.queue):
            item = self.queue[self.in_stream]
            if isinstance(item, Event) and (item.persisted or item.type == "session.idle"):
                if self.world.owner is not self:
                    del self.queue[self.in_stream :]
                    return
                self.world.stored.append(item.wire())
                self.in_stream += 1
                return
            self.in_stream += 1

    def announce(self) -> None:
        """Announce the next item: also late, after another owner has taken over."""
        if not self.in_stream:
            return
        self.in_stream -= 1
        item = self.queue.pop(0)
        if not isinstance(item, Event):
            item()
            return
        if item.persisted or item.type == "session.idle":
            self.announced = item.id
        for link in self.links:
            if link.attached:
                link.receiver.deliver(SESSION, item)

    def open(self, link: Link, number: int, seen: Seen | None) -> None:
        """Attach the client, as a replica does it."""
        if not link.here:
            link.feed.switch(self, here=True)
        for other in self.world.links:
            # A client is attached once, and a replica has lost the session before it opens the session again.
            other.attached = other is link or (other.attached and other.receiver is not link.receiver)
        if seen is None:
            link.feed.begin()
            link.tell(number, None)
            joined = Seen(self.announced, in_run=False)
            link.feed.settle(joined)
            link.tell(number, joined)
            return
        link.feed.hold()
        items, turn = self.items, link.feed.number

        def release() -> None:
            if link.feed.number == turn:
                link.tell(number, None)
                link.feed.release(missed(items, seen, link.feed.held(), working=False))

        self.queue.append(release)


class World:
    """A session, its owners of all times, and one client with its replica."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.numbers = iter(range(10**6))
        self.stored: list[JsonObject] = [{"id": "stored", "type": "session.start"}]
        self.told: list[JsonObject] = []
        self.client = Receiver(self.told.append)
        self.feed = Feed(self.client, SESSION)
        self.joined: str | None = None
        self.requests: deque[tuple[Link, int, Seen | None]] = deque()
        self.links: list[Link] = []
        self.owner = Owner(self)
        self.owners = [self.owner]

    def step(self) -> None:
        owner = self.choose.choice([self.owner, self.owner, *self.owners])
        choices: list[tuple[int, Callable[[], None]]] = [
            (6, lambda: owner.emit(self.choose.choice(["stored", "stored", "delta", "idle"]))),
            (6, owner.store),
            (6, owner.announce),
            (1, self.take_over),
            (2, self.open),
            (3, self.receive),
            (8, self.arrive),
        ]
        (action,) = self.choose.choices([action for _, action in choices], [weight for weight, _ in choices])
        action()

    def take_over(self) -> None:
        self.owner = Owner(self)
        self.owners.append(self.owner)

    def open(self) -> None:
        """Let the client's replica find the owner: the session has moved, or the connection was broken."""
        link = Link(self, self.owner, here=self.choose.random() < 0.3)
        self.links.append(link)
        self.owner.links.append(link)
        source = self.owner if link.here else link
        seen = self.feed.switch(source, here=link.here)
        self.requests.append((link, self.feed.number, seen))

    def receive(self) -> None:
        """Let an owner receive the request; one that has lost the session refuses it."""
        if self.requests:
            link, number, seen = self.requests.popleft()
            if link.owner is self.owner and self.feed.number == number:
                link.owner.open(link, number, seen)

    def arrive(self) -> None:
        """Let a message of any owner arrive at the client's replica."""
        link = self.choose.choice(self.links) if self.links else None
        if link is None or not link.under_way:
            return
        kind, content = link.under_way.popleft()
        if kind == "begins":
            self.feed.begin_from(link, *content)
        elif self.feed.take(link, content):
            self.told.append(content)

    def come_to_rest(self) -> None:
        while self.requests:
            self.receive()
        self.open()
        self.receive()
        for _ in range(3):
            for owner in self.owners:
                while owner.queue:
                    owner.store()
                    owner.announce()
            while any(link.under_way for link in self.links):
                self.arrive()


@pytest.mark.thorough
@settings(max_examples=400)
@given(seed=st.integers(0, 2**32))
def test_a_client_gets_each_stored_event_and_end_once_and_in_order_whatever_the_owners_do(seed: int) -> None:
    world = World(random.Random(seed))
    for _ in range(world.choose.randint(10, 150)):
        world.step()
    world.come_to_rest()

    ids = [item["id"] for item in world.stored]
    told = [event["id"] for event in world.told if not event["id"].startswith("delta")]
    assert world.feed.flows
    assert told == (ids[-len(told) :] if told else [])
    if told:
        assert world.feed.seen == Seen(told[-1], in_run=world.feed.seen is not None and world.feed.seen.in_run)
    # An event that is not stored comes behind the stored one that it names.
    last: str | None = None
    for event in world.told:
        if event["id"].startswith("delta"):
            assert last is None or event["parentId"] == last
        elif not event["id"].startswith("idle"):
            last = event["id"]


def test_an_item_that_a_rewind_has_removed_has_nothing_behind_it() -> None:
    idle = {"id": "i", "type": "session.idle"}
    items = [{"id": "a", "type": "user.message"}, {"id": "b", "type": "abort"}, idle]

    assert missed(items, Seen("a", in_run=True), {"i"}, working=False) == [items[1]]
    assert missed(items, Seen("gone", in_run=False), set(), working=False) == []
    assert missed(items, Seen("gone", in_run=True), set(), working=False) == [idle]
    assert missed(items, Seen("gone", in_run=True), set(), working=True) == []


def test_the_ends_of_runs_are_stored_behind_their_events_and_the_oldest_are_forgotten() -> None:
    ends = RunEnds()
    stored = b""
    for number in range(250):
        record = ends.add(Event.of(f"end-{number}", "", f"event-{number}", events.SessionIdle(mode="interactive")))
        stored = stored + record.data if record.kind == "append" else record.data
    again = RunEnds(stored + b'{"torn')

    assert [end["id"] for end in again] == [end["id"] for end in ends]
    assert 100 <= len(list(again)) <= 200
    lines = [b'{"id":"event-248","type":"abort"}\n', b'{"id":"event-249","type":"abort"}\n']
    assert last_id(lines, again) == "end-249"
    assert last_id([*lines, b'{"id":"e","type":"abort"}\n'], again) == "e"
