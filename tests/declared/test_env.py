"""Sources of the values of a declared adapter: commands, files, variables, functions and literals."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from jumpseat.declared.env import EnvResolver, EnvValues, MissingValueError
from jumpseat.errors import ConfigError

pytestmark = pytest.mark.anyio


def _is_running(argument: str) -> bool:
    """Return whether a process with this argument runs."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        # A process may end at any time.
        with suppress(OSError):
            if argument.encode() in file.read_bytes().split(b"\0"):
                return True
    return False


async def values(
    env: Mapping[str, Any],
    *,
    environ: Mapping[str, str] | None = None,
    lookup: Callable[[str], Any] = lambda _path: None,
    cwd: Path | None = None,
    given: Mapping[str, Any] | None = None,
) -> EnvValues:
    resolver = EnvResolver({"PATH": os.environ["PATH"], **(environ or {})}, cwd=cwd)
    return await resolver.resolve("adapter 'mine'", env, lookup, "the view", given)


async def test_a_command_gives_its_output_without_the_final_newline() -> None:
    found = await values({"key": "cmd: printf 'a b\\n\\n'"})

    assert found.values == {"key": "a b"}
    assert found.secret == {"a b"}


async def test_a_command_gets_only_the_environment_of_the_server() -> None:
    found = await values({"key": "cmd:echo $WHO"}, environ={"WHO": "me"})

    assert found.values["key"] == "me"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("exit 3", "its command ended with status 3"),
        ("echo secret; exit 1", "its command ended with status 1"),
        ("true", "its command printed nothing"),
    ],
)
async def test_a_command_that_fails_is_named_when_its_value_is_needed(command: str, reason: str) -> None:
    found = await values({"key": f"cmd:{command}"})

    with pytest.raises(MissingValueError) as raised:
        found.text("Bearer ${key}")

    assert str(raised.value) == f"adapter 'mine': ${{key}} has no value: {reason}"
    assert raised.value.name == "key"


async def test_a_command_that_times_out_is_ended_with_its_child_processes() -> None:
    mark = f"60.{uuid.uuid4().int}"

    found = await values({"key": {"value": f"cmd:sleep {mark} & wait", "timeout_s": 0.5}})

    assert found.missing["key"].reason == "its command took longer than 0.5 s"
    while _is_running(mark):
        await checkpoint()


async def test_a_file_is_read_again_for_every_request(tmp_path: Path) -> None:
    file = tmp_path / "key"
    resolver = EnvResolver({}, cwd=tmp_path)
    values: list[Any] = []
    for text in ("one\n", "two\n\n"):
        file.write_text(text)
        found = await resolver.resolve("adapter 'mine'", {"key": "file:key"}, lambda _path: None, None)
        values.append(found.values["key"])

    assert values == ["one", "two"]


async def test_a_missing_file_is_named_when_its_value_is_needed(tmp_path: Path) -> None:
    found = await values({"key": "file:nowhere"}, cwd=tmp_path)

    with pytest.raises(MissingValueError, match="the file 'nowhere' cannot be read: No such file or directory"):
        found.text("${key}")


async def test_a_pipe_without_a_writer_and_an_endless_file_have_no_value(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = {"value": f"file:{tmp_path}/pipe", "timeout_s": 0.25}
    found = await values({"pipe": pipe, "zeros": "file:/dev/zero", "nothing": "file:/dev/null"})

    assert {name: value.reason for name, value in found.missing.items()} == {
        "pipe": f"reading the file '{tmp_path}/pipe' took longer than 0.25 s",
        "zeros": "the file '/dev/zero' cannot be read: the file is too large",
        "nothing": "the file '/dev/null' is empty",
    }


async def test_a_secret_can_be_read_from_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = await anyio.open_process(["sh", "-c", f"printf 'the ' > {tmp_path}/pipe"])
    async with writer:
        found = await values({"key": f"file:{tmp_path}/pipe"})

    assert found.values == {"key": "the"}


async def test_an_empty_variable_counts_as_set() -> None:
    found = await values({"key": "MY_KEY"}, environ={"MY_KEY": ""})

    assert found.text("<${key}>") == "<>"


async def test_a_variable_wins_over_a_path_into_the_adapter_and_that_over_a_literal() -> None:
    paths = {"schema.model.default": "large", "both": "from the adapter"}
    env = {"model": "schema.model.default", "variable": "both", "text": "2024-06-01", "none": "opts.nothing"}

    found = await values(env, environ={"both": "from outside"}, lookup=paths.get)

    assert found.values == {
        "model": "large",
        "variable": "from outside",
        "text": "2024-06-01",
        "none": "opts.nothing",
    }
    assert found.secret == {"from outside"}


async def test_false_in_the_adapter_is_not_a_value() -> None:
    found = await values({"flag": "opts.flag"}, lookup={"opts.flag": False}.get)

    assert found.values["flag"] == "opts.flag"


async def test_functions_are_called_with_the_adapter_and_awaited_if_asynchronous() -> None:
    async def later(view: str) -> str:
        return f"{view}, later"

    found = await values({"now": lambda view: f"{view}, now", "later": later})  # pyright: ignore[reportUnknownLambdaType]

    assert found.values == {"now": "the view, now", "later": "the view, later"}


async def test_the_error_text_of_a_failing_function_is_not_disclosed() -> None:
    def broken(_view: Any) -> str:
        raise ValueError("sk-secret is wrong")

    found = await values({"key": broken})

    line = broken.__code__.co_firstlineno + 1
    assert found.missing["key"].reason == f"its function failed (ValueError at test_env.py:{line})"


async def test_values_other_than_strings_are_literals() -> None:
    found = await values({"port": 8080, "flag": True})

    assert found.text("http://x:${port}/${flag}") == "http://x:8080/true"


async def test_the_name_of_an_unset_variable_is_not_used_as_a_key() -> None:
    found = await values({"key": "MY_API_KEY"})

    with pytest.raises(MissingValueError, match="the environment variable MY_API_KEY is not set"):
        found.text("Bearer ${key}")


async def test_a_literal_can_have_any_form() -> None:
    found = await values({"key": {"value": "MY_API_KEY", "literal": True}})

    assert found.text("Bearer ${key}") == "Bearer MY_API_KEY"


async def test_a_field_with_a_missing_optional_value_is_left_out() -> None:
    found = await values({"key": {"value": "MY_API_KEY", "optional": True}})

    assert found.text("Bearer ${key}") is None


async def test_an_undeclared_placeholder_is_named() -> None:
    found = await values({})

    with pytest.raises(MissingValueError, match=r"\$\{hots\} has no value: it is not declared in env"):
        found.text("https://${hots}/v1")


async def test_a_function_that_uses_a_missing_value_gets_an_error_that_names_it() -> None:
    table = (await values({"url": "NO_SUCH_VARIABLE", "team": "blue"})).table()

    assert (table["team"], table.get("url")) == ("blue", None)
    with pytest.raises(
        MissingValueError, match=r"\$\{url\} has no value: the environment variable NO_SUCH_VARIABLE"
    ):
        table["url"]
    with pytest.raises(KeyError, match="tema"):
        table["tema"]


async def test_a_value_of_the_session_wins_and_its_entry_is_not_evaluated(tmp_path: Path) -> None:
    mark = tmp_path / "ran"

    found = await values({"key": f"cmd:touch {mark}; echo no"}, given={"key": "given"})

    assert found.values == {"key": "given"}
    assert not mark.exists()


async def test_a_value_is_cached_for_the_time_that_its_entry_states(tmp_path: Path) -> None:
    count = tmp_path / "count"
    resolver = EnvResolver({"PATH": os.environ["PATH"]})
    command = f"cmd:echo x >> {count}; echo key"

    async def run_twice(cache_s: float | None) -> int:
        count.write_text("")
        for _ in range(2):
            entry = {"value": command, "cache_s": cache_s}
            await resolver.resolve(f"mine-{cache_s}", {"key": entry}, lambda _path: None, None)
        return len(count.read_text().splitlines())

    assert await run_twice(3600) == 1
    assert await run_twice(None) == 2
    assert await run_twice(0) == 2


async def test_an_entry_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"env\.key\.cach: unknown, did you mean 'cache_s'\?"):
        await values({"key": {"value": "x", "cach": 3}})
