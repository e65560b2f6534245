"""Recording calls to a provider and answering from the recordings, with a real provider on loopback."""

from __future__ import annotations

import gzip
import json
import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from jumpseat.adapters.adapter import Endpoint, Timeouts
from jumpseat.adapters.models.wire_caller import WireCaller
from jumpseat.adapters.providers import load_adapter
from jumpseat.adapters.recording.recorder import Recorder
from jumpseat.adapters.recording.recordings import open_for_recording, read_folder
from jumpseat.adapters.recording.replayer import Replayer
from jumpseat.adapters.transport.http import HttpModel, HttpTransport
from jumpseat.agent.blocks import TextBlock, UserMessage
from jumpseat.agent.model import ModelEvent, ModelRequest
from jumpseat.errors import ProviderAuthError, ProviderTransportError, ReplayError
from tests.support.cases import all_cases
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, Reply, event_stream, json_reply, text_reply

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]

KEY: Final = "very-secret-value-1234567"  # not a real one
STOP: Final = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE: Final = b"data: [DONE]\n\n"


def delta(text: str) -> bytes:
    return b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()


def answer(*words: str) -> Reply:
    return event_stream(*map(delta, words), STOP + DONE)


@asynccontextmanager
async def recording(folder: Path, also: Callable[[str], str] = str) -> AsyncGenerator[HttpTransport]:
    async with HttpTransport(middleware=Recorder(open_for_recording(str(folder)), also)) as transport:
        yield transport


@asynccontextmanager
async def replaying(folder: Path, **how: bool) -> AsyncGenerator[HttpTransport]:
    async with HttpTransport(middleware=Replayer(folder, **how)) as transport:
        yield transport


def model_at(
    url: str,
    transport: HttpTransport,
    *,
    kind: str = "openai",
    key: str = KEY,
    timeouts: Timeouts | None = None,
    **headers: str,
) -> HttpModel:
    made = Endpoint(url, api_key=key, headers=headers)
    return HttpModel(WireCaller(load_adapter(kind), made), transport, timeouts=timeouts)


async def ask(model: HttpModel, text: str = "hi") -> list[ModelEvent]:
    with anyio.fail_after(WAIT_S):
        async with model.stream(ModelRequest("m", "s", [UserMessage([TextBlock(text)])])) as events:
            return [event async for event in events]


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the single call in ``folder``."""
    (path,) = folder.iterdir()
    return [json.loads(line) for line in path.read_text().splitlines()]


def all_text(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.iterdir())


# --- recordings ---------------------------------------------------------------------------------------------------


async def test_a_recorded_call_is_a_file_with_the_request_and_the_pieces_of_the_answer(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("Hel", "lo")) as server:
        await ask(model_at(f"{server.url}/v1", transport))

    request, response, *pieces, end = lines(tmp_path / "r")
    assert (request["type"], request["version"], request["method"]) == ("request", 1, "POST")
    assert request["url"] == f"{server.url}/v1/chat/completions"
    assert ["authorization", "[redacted]"] in request["headers"]
    assert request["body"]["messages"][-1] == {"role": "user", "content": "hi"}
    assert (response["status"], dict(response["headers"])["content-type"]) == (200, "text/event-stream")
    # What arrives together is one piece.
    assert "".join(piece["text"] for piece in pieces).encode() == delta("Hel") + delta("lo") + STOP + DONE
    assert all(line["afterS"] >= 0 for line in (response, *pieces))
    assert (end["type"], end["how"]) == ("end", "end")


async def test_only_the_owner_can_read_a_recording(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("x")) as server:
        await ask(model_at(server.url, transport))

    (path,) = (tmp_path / "r").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_key_echoed_in_two_pieces_is_in_no_recording(tmp_path: Path, kind: str) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}!"}}).encode()
    start = body.index(KEY.encode())
    async with ModelServer() as server:
        with all_cases() as case:
            for cut in range(len(KEY)):
                with case(f"cut at {cut}"):
                    pieces = [body[: start + cut], body[start + cut :]]
                    server.replies.append(Reply(pieces, status=401, headers={"Content-Type": kind}))
                    folder = tmp_path / f"{cut}"
                    async with recording(folder) as transport:
                        with pytest.raises(ProviderAuthError):
                            await ask(model_at(server.url, transport))

                    assert KEY not in all_text(folder)
                    text = "".join(line["text"] for line in lines(folder) if line["type"] == "piece")
                    assert json.loads(text) == {"error": {"message": "bad key [redacted]!"}}


async def test_no_secret_of_an_address_a_header_or_a_field_is_in_a_recording(tmp_path: Path) -> None:
    account = json_reply({"token": "tid=the-tokens-value", "refresh_token": "another-value", "plan": "pro"})
    headers = {"x-corp-Token": "corp-value-1", "Cookie": "a=cookie-value", "X-Plain": "plain"}
    async with recording(tmp_path / "r") as transport, ModelServer(account) as server:
        place = server.url.replace("http://", "http://user:password-value@")
        answered = await transport.get_json(f"{place}/token?key=query-value&alt=sse", headers)
        assert isinstance(answered, dict)
        assert answered["token"] == "tid=the-tokens-value"

    text = all_text(tmp_path / "r")
    assert [word for word in text.replace('"', " ").split() if "-value" in word] == []
    request, _, piece, _ = lines(tmp_path / "r")
    assert request["url"] == f"{server.url}/token?key=[redacted]&alt=sse"
    assert json.loads(piece["text"]) == {"token": "[redacted]", "refresh_token": "[redacted]", "plan": "pro"}


async def test_a_word_that_is_also_in_a_header_stays_in_the_conversation(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("in development")) as server:
        await ask(model_at(f"{server.url}/development", transport, x_env="development"), "development?")

    request, _, piece, *_ = lines(tmp_path / "r")
    assert request["url"].endswith("/development/chat/completions")
    assert ["x_env", "[redacted]"] in request["headers"]
    assert request["body"]["messages"][-1]["content"] == "development?"
    assert "in development" in piece["text"]


async def test_a_key_of_one_letter_is_masked_only_in_its_header(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("knock")) as server:
        await ask(model_at(server.url, transport, key="k"), "knock")

    request, _, piece, *_ = lines(tmp_path / "r")
    assert ["connection", "keep-alive"] in request["headers"]
    assert ["authorization", "[redacted]"] in request["headers"]
    assert "knock" in piece["text"]


async def test_values_masked_by_the_process_are_masked_in_recordings(tmp_path: Path) -> None:
    def also(text: str) -> str:
        return text.replace("hunter2", "[redacted]")

    async with recording(tmp_path / "r", also) as transport, ModelServer(answer("it is hunter2")) as server:
        await ask(model_at(server.url, transport), "hunter2")

    assert "hunter2" not in all_text(tmp_path / "r")


async def test_a_compressed_answer_is_recorded_as_text(tmp_path: Path) -> None:
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}
    reply = Reply([gzip.compress(delta("a") + STOP + DONE)], headers=headers)
    async with recording(tmp_path / "r") as transport, ModelServer(reply) as server:
        answer = await ask(model_at(server.url, transport))

    assert delta("a").decode() in "".join(line.get("text", "") for line in lines(tmp_path / "r"))
    async with replaying(tmp_path / "r") as transport:
        assert await ask(model_at("http://nowhere.invalid", transport)) == answer


async def test_a_missing_folder_loses_the_recording_and_not_the_answer(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("a")) as server:
        (tmp_path / "r").rmdir()
        assert len(await ask(model_at(server.url, transport))) == 2


# --- replayed answers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        answer("Hel", "lo"),
        event_stream(delta("é")[:40], delta("é")[40:], STOP + DONE),
        event_stream(delta("part"), ending="cut"),
        event_stream(delta("part"), ending="hang"),
        Reply(silent=True, ending="cut"),
        Reply(silent=True, ending="hang"),
        json_reply({"error": {"message": "no"}}, status=400),
        json_reply({"error": {"code": "insufficient_quota"}}, status=429),
        text_reply("<html>", status=502),
    ],
    ids=["whole", "in pieces", "cut", "silence", "no answer", "no first byte", "refused", "quota", "html"],
)
async def test_a_recorded_call_replays_identically(tmp_path: Path, reply: Reply) -> None:
    async def outcome(model: HttpModel) -> list[Any]:
        found: list[Any] = []
        try:
            with anyio.fail_after(WAIT_S):
                request = ModelRequest("m", "s", [UserMessage([TextBlock("hi")])])
                async with model.stream(request) as events:
                    async for event in events:
                        found.append(event)
        except Exception as error:
            return [*found, type(error)]
        return found

    silent = Timeouts(first_byte=0.5 if reply.silent else WAIT_S, idle=0.5)
    timeouts = silent if reply.ending == "hang" else None
    async with recording(tmp_path / "r") as transport, ModelServer(reply) as server:
        online = await outcome(model_at(server.url, transport, timeouts=timeouts))
    async with replaying(tmp_path / "r") as transport:
        offline = await outcome(model_at(server.url, transport, timeouts=timeouts))
    assert offline == online


async def test_each_request_gets_the_answer_that_was_recorded_for_it(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("1"), answer("2")) as server:
        model = model_at(server.url, transport)
        first, second = await ask(model, "one"), await ask(model, "two")

    async with replaying(tmp_path / "r") as transport:
        model = model_at("http://nowhere.invalid", transport, key="another")
        assert await ask(model, "two") == second
        assert await ask(model, "one") == first


async def test_equal_requests_get_their_answers_in_order_then_repeat_the_last(tmp_path: Path) -> None:
    replies = (text_reply("busy", status=503), answer("2"))
    async with recording(tmp_path / "r") as transport, ModelServer(*replies) as server:
        model = model_at(server.url, transport)
        with pytest.raises(Exception, match="busy"):
            await ask(model)
        second = await ask(model)

    async with replaying(tmp_path / "r") as transport:
        model = model_at("http://nowhere.invalid", transport)
        with pytest.raises(Exception, match="busy"):
            await ask(model)
        assert [await ask(model), await ask(model)] == [second, second]


async def test_ids_times_and_the_working_folder_may_differ(tmp_path: Path) -> None:
    before = "at 2026-01-02T03:04:05.678Z as 7d7b8b9e-0000-4000-8000-000000000001\nCurrent working directory: /a/b"
    after = "at 2027-11-12T13:14:15Z as 11111111-2222-4333-8444-555555555555\nCurrent working directory: /c"
    async with recording(tmp_path / "r") as transport, ModelServer(answer("1")) as server:
        said = await ask(model_at(server.url, transport), before)

    async with replaying(tmp_path / "r") as transport:
        assert await ask(model_at("http://nowhere.invalid", transport), after) == said


async def test_the_error_for_an_unrecorded_request_shows_the_difference_to_the_nearest_one(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("1"), answer("2")) as server:
        model = model_at(server.url, transport)
        await ask(model, "What is the capital of France?")
        await ask(model, "Quite another question")
    first = sorted(path.name for path in (tmp_path / "r").iterdir())[0]

    async with replaying(tmp_path / "r") as transport:
        with pytest.raises(ReplayError) as caught:
            await ask(model_at("http://nowhere.invalid", transport), "What is the capital of Spain?")
    text = str(caught.value)
    assert "offline" in text
    assert f"'{first}' differs at messages[1].content: recorded '…" in text
    assert "capital of France?', sent '…" in text
    assert "capital of Spain?'" in text
    assert not caught.value.retryable


async def test_the_error_for_an_unrecorded_path_lists_the_recorded_ones(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("1")) as server:
        await ask(model_at(f"{server.url}/v1", transport))

    async with replaying(tmp_path / "r") as transport:
        with pytest.raises(ReplayError, match=r"POST /v1/messages, only of POST /v1/chat/completions"):
            await ask(model_at("http://nowhere.invalid", transport, kind="anthropic"))


async def test_bodies_are_not_compared_when_replaying_in_order(tmp_path: Path) -> None:
    async with recording(tmp_path / "r") as transport, ModelServer(answer("1"), answer("2")) as server:
        model = model_at(server.url, transport)
        recorded = [await ask(model, "one"), await ask(model, "two")]

    async with replaying(tmp_path / "r", in_order=True) as transport:
        model = model_at("http://nowhere.invalid", transport)
        assert [await ask(model, "three"), await ask(model, "four")] == recorded


async def test_recorded_delays_are_replayed(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    async with recording(folder) as transport, ModelServer(answer("1", "2")) as server:
        await ask(model_at(server.url, transport))
    (path,) = folder.iterdir()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        if record["type"] == "piece":
            record["afterS"] = 0.06
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))

    async with replaying(folder, delays=True) as transport:
        started = anyio.current_time()
        await ask(model_at("http://nowhere.invalid", transport))
    assert anyio.current_time() - started >= 0.06


async def test_a_truncated_recording_is_replayed_to_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    async with recording(folder) as transport, ModelServer(answer("Hel", "lo")) as server:
        await ask(model_at(server.url, transport))
    (path,) = folder.iterdir()
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:2]) + whole[2][:20])

    async with replaying(folder) as transport:
        with pytest.raises(ProviderTransportError, match="ends early: the file is incomplete"):
            await ask(model_at("http://nowhere.invalid", transport))
    for size in range(len(b"".join(whole))):
        path.write_bytes(b"".join(whole)[:size])
        assert len(read_folder(folder)) in (0, 1)


@pytest.mark.parametrize("text", ["hello\n", '{"type": "request", "version": 2}\n', '{"type": "session.start"}\n'])
async def test_an_invalid_recording_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.jsonl").write_text(text)

    async with replaying(tmp_path) as transport:
        with pytest.raises(ReplayError, match=r"'x\.jsonl' is not a (valid )?recording"):
            await ask(model_at("http://nowhere.invalid", transport))
