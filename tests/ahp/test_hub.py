"""Clients that subscribe, drop, come back and stay away too long have the state of the host in the end."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import orjson
import pytest

from jumpseat.ahp.hub.channels import END, RING_ACTIONS, Channel, Numbered, Origin, older_turns
from jumpseat.ahp.hub.hub import GRACE_S, Hub
from jumpseat.ahp.hub.numbers import Numbers
from jumpseat.ahp.states.chat import reduce_chat
from jumpseat.ahp.states.root import reduce_root
from jumpseat.ahp.states.session import reduce_session
from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation import uris
from jumpseat.ahp.translation.uris import chat_uri, sub_agent_uri
from jumpseat.errors import InvalidRequestError, UnknownItemError
from jumpseat.sessions.access import EVERYTHING, Access
from tests.ahp.generated import INITIAL, actions
from tests.support.cases import all_cases

REDUCERS: Final = {"root": reduce_root, "chat": reduce_chat, "session": reduce_session}


class Time:
    def __init__(self) -> None:
        self.s = 1.0


class Connection:
    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.received: list[JsonObject] = []
        self.renewed: list[str] = []
        self.parts: list[str] = []

    def deliver(self, envelope: bytes, published: Numbered | None = None) -> None:
        self.received.append(orjson.loads(envelope))

    def renew(self, uri: str) -> None:
        self.renewed.append(uri)

    def show_part(self, whole: str, channel: Channel) -> None:
        self.parts.append(channel.uri)

    def hide_part(self, uri: str) -> None:
        self.parts.remove(uri)


class Peer:
    """A client as the official ones are: it folds what it gets, in order, and remembers the last number."""

    def __init__(self, hub: Hub, client_id: str, access: Access = EVERYTHING) -> None:
        self.hub = hub
        self.client_id = client_id
        self.access = access
        self.states: dict[str, JsonObject] = {}
        self.last_seen = 0
        self.connection: Connection | None = None
        self.begin()

    def begin(self) -> None:
        self.connection = Connection(self.client_id)
        self.hub.introduce(self.connection, self.access)
        self.states.clear()
        self.last_seen = self.hub.numbers.last

    def drop(self, *, lose: int) -> None:
        """Lose the connection, and the last messages that were sent over it."""
        assert self.connection is not None
        self.read(len(self.connection.received) - lose)
        self.hub.leave(self.connection)
        self.connection = None

    def read(self, count: int | None = None) -> None:
        assert self.connection is not None
        for envelope in self.connection.received[:count]:
            self.apply(envelope)
        self.connection.received.clear()

    def apply(self, envelope: JsonObject) -> None:
        assert envelope["serverSeq"] > self.last_seen
        self.last_seen = envelope["serverSeq"]
        uri = envelope["channel"]
        self.states[uri] = REDUCERS[kind_of(uri)](self.states[uri], envelope["action"])

    def subscribe(self, uri: str) -> None:
        assert self.connection is not None
        # The answer comes behind the actions that were sent before it.
        snapshot = self.hub.subscribe(self.connection, uri)
        self.read()
        self.take(snapshot)

    def take(self, snapshot: JsonObject) -> None:
        self.states[snapshot["resource"]] = snapshot["state"]
        self.last_seen = max(self.last_seen, snapshot["fromSeq"])

    def come_back(self) -> str:
        self.connection = Connection(self.client_id)
        wanted = [*self.states, "x:/gone"]
        result = self.hub.reconnect(self.connection, self.access, self.last_seen, wanted)
        result = orjson.loads(orjson.dumps(result))
        if result["type"] == "replay":
            assert result["missing"] == ["x:/gone"]
            for envelope in result["actions"]:
                self.apply(envelope)
        else:
            for snapshot in result["snapshots"]:
                self.take(snapshot)
        return result["type"]


def kind_of(uri: str) -> str:
    return uri.partition(":")[0].removeprefix("ahp-")


def hub_at(time: Time, ring_actions: int = RING_ACTIONS) -> Hub:
    return Hub(Numbers(lambda: int(time.s * 1000)), lambda: time.s, ring_actions)


def test_any_order_of_subscribing_dropping_and_coming_back_gives_the_same_states() -> None:
    outcomes: set[str] = set()
    with all_cases() as case:
        for seed in range(40):
            with case(seed):
                outcomes |= play(Random(seed))
    assert outcomes == {"replay", "snapshot"}


def play(random: Random) -> set[str]:
    time, outcomes = Time(), set[str]()
    hub = hub_at(time, ring_actions=30)
    uris = ["ahp-chat:/1", "ahp-chat:/2", "ahp-session:/1"]
    for uri in uris:
        hub.open(uri, INITIAL[kind_of(uri)], REDUCERS[kind_of(uri)])
    peers = [Peer(hub, name) for name in "abc"]
    for _ in range(80):
        peer, uri = random.choice(peers), random.choice(uris)
        match random.randrange(8):
            case 0 if peer.connection is not None:
                peer.subscribe(uri)
            case 1 if peer.connection is not None and uri in peer.states:
                peer.read()
                hub.unsubscribe(peer.connection, uri)
                del peer.states[uri]
            case 2 if peer.connection is not None:
                peer.drop(lose=random.randrange(3))
            case 3 if peer.connection is None:
                outcomes.add(peer.come_back())
            case 4:
                time.s += random.choice((0.5, GRACE_S / 3))
                hub.expire()
            case _:
                # Sometimes more than the channel keeps.
                for _ in range(random.choice((1, 5, 60)) if random.random() < 0.3 else 2):
                    hub.publish(uri, actions(random, kind_of(uri), 1)[0])
    for peer in peers:
        if peer.connection is None:
            outcomes.add(peer.come_back())
        peer.read()
        for uri, state in peer.states.items():
            channel = hub.get(uri)
            assert channel is not None
            assert state == channel.state
    return outcomes


# --- single rules -----------------------------------------------------------------------------------------------


@pytest.fixture
def hub() -> Hub:
    hub = hub_at(Time())
    hub.open("ahp-chat:/1", INITIAL["chat"], reduce_chat, "anna")
    hub.open_for_each("ahp-root://", INITIAL["root"], reduce_root)
    return hub


TITLE: Final[Any] = {"type": "chat/activityChanged", "activity": "Thinks"}
ANNA: Final = Access("anna", all=False)
BERT: Final = Access("bert", all=False)


def test_an_action_without_effect_is_not_sent(hub: Hub) -> None:
    peer = Peer(hub, "a")
    peer.subscribe("ahp-chat:/1")
    assert hub.publish("ahp-chat:/1", TITLE, Origin("a", 7))
    assert not hub.publish("ahp-chat:/1", TITLE, Origin("a", 8))
    assert peer.connection is not None
    (echo,) = peer.connection.received
    assert echo["origin"] == {"clientId": "a", "clientSeq": 7}


def test_a_refusal_reaches_its_sender_alone_and_has_no_number(hub: Hub) -> None:
    one, other = Peer(hub, "a"), Peer(hub, "b")
    other.subscribe("ahp-chat:/1")
    before = hub.numbers.last
    assert one.connection is not None
    assert other.connection is not None
    hub.refuse(Origin("a", 3), "ahp-chat:/1", TITLE, "no turn is active")
    (refusal,) = one.connection.received
    assert (refusal["rejectionReason"], refusal["serverSeq"]) == ("no turn is active", before)
    assert other.connection.received == []
    other.drop(lose=0)
    assert other.come_back() == "replay"
    assert hub.numbers.last == before


def test_tokens_see_nothing_of_each_other(hub: Hub) -> None:
    anna, bert = Peer(hub, "a", ANNA), Peer(hub, "b", BERT)
    anna.subscribe("ahp-chat:/1")
    with pytest.raises(UnknownItemError):
        bert.subscribe("ahp-chat:/1")
    assert bert.connection is not None
    bert.subscribe("ahp-root://")
    anna.subscribe("ahp-root://")
    settings = {"type": "root/configChanged", "config": {"theme": "dark"}}
    assert hub.publish("ahp-root://", settings, Origin("a", 1), ANNA)
    anna.read()
    assert anna.states["ahp-root://"]["config"]["values"]["theme"] == "dark"
    anna.drop(lose=0)
    # The id of another token's client is that of another client.
    thief = Connection("a")
    assert hub.reconnect(thief, BERT, 0, ["ahp-chat:/1"])["missing"] == ["ahp-chat:/1"]
    hub.introduce(thief, BERT)
    hub.publish("ahp-chat:/1", TITLE)
    hub.refuse(Origin("a", 2, access=ANNA), "ahp-chat:/1", TITLE, "too late")
    assert bert.connection.received == thief.received == []
    assert "theme" not in hub.subscribe(bert.connection, "ahp-root://")["state"]["config"]["values"]
    assert anna.come_back() == "replay"
    assert anna.states["ahp-chat:/1"]["activity"] == "Thinks"


def test_a_new_connection_takes_the_place_of_the_old_one(hub: Hub) -> None:
    peer = Peer(hub, "a")
    peer.subscribe("ahp-chat:/1")
    old = peer.connection
    assert old is not None
    assert peer.come_back() == "replay"
    hub.leave(old)
    hub.publish("ahp-chat:/1", TITLE)
    assert old.received == []
    peer.read()
    assert peer.states["ahp-chat:/1"]["activity"] == "Thinks"
    with pytest.raises(InvalidRequestError):
        hub.subscribe(old, "ahp-chat:/1")


def test_after_a_restart_with_an_earlier_clock_clients_get_snapshots() -> None:
    time = Time()
    peer = Peer(hub_at(time), "a")
    again = hub_at(Time())
    again.open("ahp-chat:/1", INITIAL["chat"], reduce_chat)
    again.introduce(Connection("a"), EVERYTHING)
    peer.hub, peer.last_seen, peer.states = again, 10**9, {"ahp-chat:/1": INITIAL["chat"]}
    assert peer.come_back() == "snapshot"
    assert again.publish("ahp-chat:/1", TITLE)
    peer.read()
    assert peer.last_seen > 10**9


def test_older_turns_join_the_latest_ones_without_gaps() -> None:
    turns: list[JsonObject] = [{"id": f"t{number}", "responseParts": []} for number in range(10)]
    hub = hub_at(Time())
    channel = hub.open("ahp-chat:/1", {**INITIAL["chat"], "turns": turns}, reduce_chat)
    with all_cases() as case:
        for view in (0, 1, 4, 10, 11):
            with case(view):
                state = channel.snapshot(1, view)["state"]
                assert [turn["id"] for turn in state["turns"]] == [
                    turn["id"] for turn in turns[10 - min(view, 10) :]
                ]
                while (cursor := state.get("turnsNextCursor")) is not None:
                    action = older_turns(channel.state, cursor, 3)
                    assert action is not None
                    state = reduce_chat(state, action)
                assert state == channel.state
    assert older_turns(channel.state, "unknown", 3) is None
    assert older_turns(channel.state, END, 3) is not None


def test_a_channel_that_is_opened_again_in_another_state_sends_for_its_subscribers() -> None:
    hub, connection = Hub(), Connection("a")
    hub.introduce(connection, EVERYTHING)
    for state, renewed in (({"n": 1}, []), ({"n": 1}, []), ({"n": 2}, ["x"])):
        hub.open("x", state, lambda before, _: before)
        hub.subscribe(connection, "x")
        assert connection.renewed == renewed


def test_a_client_with_the_numbers_of_another_replica_gets_a_snapshot() -> None:
    hub, other = (Hub(Numbers(step=4, remainder=remainder)) for remainder in (1, 2))
    hub.open("x", {}, lambda before, _: before)
    for number, kind in ((hub.numbers.next(), "replay"), (other.numbers.next(), "snapshot")):
        assert hub.reconnect(Connection("a"), EVERYTHING, number, ["x"])["type"] == kind
        assert hub.numbers.last % 4 == 1


def test_further_channels_belong_to_the_one_of_the_session() -> None:
    hub = hub_at(Time())
    hub.open(SESSION, INITIAL["session"], reduce_session, "anna")
    anna, bert = Connection("a"), Connection("b")
    hub.introduce(anna, Access("anna", all=False))
    hub.introduce(bert, Access("bert", all=False))
    hub.subscribe(anna, SESSION)
    for part in PARTS:
        hub.open_part(SESSION, part, INITIAL["chat"], reduce_chat)
        with pytest.raises(UnknownItemError):
            hub.subscribe(bert, part)
    assert anna.parts == hub.parts(SESSION) == list(PARTS)
    hub.close_part(SESSION, PARTS[0])
    assert anna.parts == hub.parts(SESSION) == list(PARTS[1:])
    hub.subscribe(anna, PARTS[1])
    hub.unsubscribe(anna, SESSION)
    # A client that watches a part wants the whole to stay open.
    assert hub.is_wanted([SESSION])
    hub.close(SESSION)
    assert [hub.get(uri) for uri in (SESSION, *PARTS)] == [None] * 4
    assert not hub.is_wanted([SESSION])


SESSION: Final = "ahp-session:/some-id"
PARTS: Final = (
    sub_agent_uri("some-id", "7f0c"),
    "ahp-terminal:/some-id/turn/call",
    f"{SESSION}/changeset/turn/t1",
)


def test_the_session_of_a_channel() -> None:
    assert [uris.kind_of(uri) for uri in (SESSION, *PARTS)] == ["session", "chat", "terminal", "changeset"]
    assert [uris.owner_of(uri) for uri in (SESSION, chat_uri("some-id"), *PARTS)] == ["some-id"] * 5
    # Nothing but a session and its main chat can be created or deleted.
    assert [uris.session_of(uri) for uri in PARTS] == [None] * 3
    for unknown in ("ahp-chat://subagent/", "ahp-chat://subagent/%%", "ahp-terminal:/", "ahp-session:///", "x:/y"):
        assert uris.owner_of(unknown) is None, unknown
