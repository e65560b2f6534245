"""Deltas are joined where each alone costs too much: in the state of a channel, and for a client that is behind."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, Final

import anyio
import orjson
import pytest

from jumpseat.ahp.hub.channels import Channel, Numbered, Origin, envelope_of
from jumpseat.ahp.hub.delta_coalescer import HeldDeltas
from jumpseat.ahp.states.chat import reduce_chat
from jumpseat.ahp.states.values import Action, JsonObject
from tests.ahp.client import Client, check_equal, connected, door_server
from tests.ahp.generated import INITIAL, actions
from tests.support.cases import all_cases
from tests.support.limits import WAIT_S

URI: Final = "ahp-chat:/1"


def stream(random: Random) -> list[Action]:
    """Return actions among which deltas follow each other, also for parts and calls that do not exist."""
    found: list[Action] = []
    for action in actions(random, "chat", 40):
        found.append(action)
        turn: Any = action.get("turnId", "t1")
        for _ in range(random.choice((0, 0, 3))):
            part = random.choice(("p1", "p2", "c1"))
            kind, key = random.choice(
                (("delta", "partId"), ("reasoning", "partId"), ("toolCallDelta", "toolCallId"))
            )
            text = random.choice(("", "a", "bc"))
            delta: Action = {"type": f"chat/{kind}", "turnId": turn, key: part, "content": text}
            found += [delta] * random.choice((1, 3))
    return found


def test_a_channel_has_the_state_to_which_single_actions_lead() -> None:
    with all_cases() as case:
        for seed in range(300):
            with case(seed):
                random = Random(seed)
                state = INITIAL["chat"]
                channel = Channel(URI, state, reduce_chat, 0)
                for action in stream(random):
                    after = reduce_chat(state, action)
                    assert channel.apply(action) == (after is not state)
                    state = after
                    if random.random() < 0.2:
                        assert channel.state == state
                assert channel.state == state


def test_held_deltas_lead_to_the_same_state_with_growing_numbers() -> None:
    with all_cases() as case:
        for seed in range(300):
            with case(seed):
                random, held = Random(seed), HeldDeltas()
                states = dict.fromkeys((URI, "ahp-chat:/2"), INITIAL["chat"])
                sent: list[JsonObject] = []
                for number, action in enumerate(stream(random)):
                    uri = URI if random.random() < 0.9 else "ahp-chat:/2"
                    if (after := reduce_chat(states[uri], action)) is states[uri]:
                        continue
                    states[uri] = after
                    origin = Origin("a", number) if random.random() < 0.05 else None
                    published = Numbered(uri, action, number, origin)
                    if not held.hold(published):
                        sent += decoded(held.take())
                        sent += decoded(envelope_of(uri, action, number, origin))
                sent += decoded(held.take())
                found = dict.fromkeys(states, INITIAL["chat"])
                for envelope in sent:
                    found[envelope["channel"]] = reduce_chat(found[envelope["channel"]], envelope["action"])
                assert found == states
                numbers = [envelope["serverSeq"] for envelope in sent]
                assert numbers == sorted(set(numbers))


def decoded(envelope: bytes | None) -> list[JsonObject]:
    return [] if envelope is None else [orjson.loads(envelope)]


@pytest.mark.anyio
# A busy machine needs long to write so much.
@pytest.mark.timeout(240)
async def test_a_client_that_stops_reading_uses_bounded_memory_and_delays_no_other(tmp_path: Path) -> None:
    count = 150_000
    script: JsonObject = {
        "prompts": [
            {"when": "talk", "turns": [{"deltas": ["words "] * count}]},
            {"turns": [{"text": "quick"}] * 9},
        ]
    }
    async with (
        door_server(tmp_path, script, limit_s=230) as (server, port),
        connected(port, "stuck") as stuck,
        connected(port, "other") as other,
    ):
        await other.create()
        uri = await stuck.create()
        await other.notification("root/sessionAdded")
        before = server.rss_bytes()
        # From here on, this client reads nothing.
        await stuck.dispatch("chat/turnStarted", turnId="t1", startedAt="2026-11-28T00:00:00.000Z", message=MESSAGE)
        await other.prompt("t1", "hello")
        await other.action("chat/turnComplete")
        # The turn waits once for the client, and ends without it.
        while True:
            changed = await patient(other, "root/sessionSummaryChanged")
            if changed["session"] == uri and changed["changes"]["status"] & 31 == 1:
                break
        assert server.rss_bytes() - before < 64 << 20
        await until_complete(stuck)
        (turn,) = stuck.states[stuck.chat]["turns"]
        assert turn["responseParts"][-1]["content"] == "words " * count
        deltas = [
            one for one in stuck.received if one.get("params", {}).get("action", {}).get("type") == "chat/delta"
        ]
        assert len(deltas) < count - 1
        await check_equal(port, stuck)


MESSAGE: Final[JsonObject] = {"text": "talk", "origin": {"kind": "user"}}


async def patient(client: Client, method: str) -> JsonObject:
    """Return a notification that may take longer than others, on a busy machine."""
    for _ in range(3):
        with anyio.move_on_after(WAIT_S - 5):
            return await client.notification(method)
    return await client.notification(method)


async def until_complete(client: Client) -> None:
    while client.states[client.chat].get("activeTurn") is not None or not client.states[client.chat]["turns"]:
        await client.settle()
