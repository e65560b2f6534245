"""The command line: the flags that the SDKs pass, in any order, and errors."""

from __future__ import annotations

import itertools

import pytest

from jumpseat.cli import LOG_LEVELS, Options, Replay, parse
from jumpseat_protocol.version import __version__

# Every flag with a value that the SDKs pass together, in the order of the Node SDK.
NODE = [
    ["--headless"],
    ["--no-auto-update"],
    ["--log-level", "debug"],
    ["--stdio"],
    ["--auth-token-env", "COPILOT_SDK_AUTH_TOKEN"],
    ["--no-auto-login"],
    ["--session-idle-timeout", "60"],
    ["--remote"],
]
ENVIRON = {"COPILOT_SDK_AUTH_TOKEN": "gho_secret", "COPILOT_CONNECTION_TOKEN": "tcp_secret"}


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Return the error about invalid arguments."""
    with pytest.raises(SystemExit) as caught:
        parse(argv, {})
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.strip()


def test_the_flags_of_the_sdks_mean_the_same_in_any_order() -> None:
    expected = Options(
        environ=ENVIRON,
        port=None,
        log_level="debug",
        connection_token=None,
        auth_token="gho_secret",
        auto_login=False,
        allow_unasked=False,
    )
    for flags in itertools.islice(itertools.permutations(NODE), 0, None, 997):
        assert parse(list(itertools.chain(*flags)), ENVIRON) == expected


def test_extra_arguments_can_be_first_or_last() -> None:
    first = parse(["--yolo", "--headless", "--no-auto-update", "--stdio"], {})
    last = parse(["--server", "--stdio", "--no-auto-update", "--yolo"], {})

    assert first == last == Options(environ={}, port=None, allow_unasked=True)


@pytest.mark.parametrize("mode", [["--headless"], ["--server"], ["--headless", "--server"], []])
def test_headless_and_server_are_synonyms_and_optional(mode: list[str]) -> None:
    assert parse([*mode, "--stdio"], {}) == Options(environ={}, port=None)


@pytest.mark.parametrize(
    ("argv", "port"),
    [
        (["--headless"], 0),
        (["--headless", "--port", "0"], 0),
        (["--port=8080", "--headless"], 8080),
        (["--port", "65535"], 65535),
        (["--stdio"], None),
    ],
)
def test_without_stdio_it_listens_on_the_given_port_or_any(argv: list[str], port: int | None) -> None:
    assert parse(argv, {}).port == port


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_every_log_level_is_known(level: str) -> None:
    assert parse(["--log-level", level], {}) == Options(environ={}, port=0, log_level=level)


def test_the_connection_token_applies_to_tcp_only() -> None:
    assert parse(["--port", "0"], ENVIRON).connection_token == "tcp_secret"
    assert parse(["--stdio"], ENVIRON).connection_token is None


def test_the_auth_token_is_read_from_the_named_variable() -> None:
    assert parse(["--auth-token-env", "MINE"], {"MINE": "x", **ENVIRON}).auth_token == "x"
    assert parse(["--auth-token-env=MINE"], ENVIRON).auth_token is None
    assert parse([], ENVIRON).auth_token is None


def test_empty_variables_count_as_unset() -> None:
    environ = {"COPILOT_CONNECTION_TOKEN": "", "COPILOT_SDK_AUTH_TOKEN": "", "COPILOT_HOME": "", "A": "b"}

    options = parse(["--auth-token-env", "COPILOT_SDK_AUTH_TOKEN"], environ)

    assert options == Options(environ={"A": "b"}, port=0, empty=frozenset(environ) - {"A"})
    assert options.whole_environ == environ


def test_no_secret_is_in_the_repr_of_the_options() -> None:
    shown = repr(parse(["--auth-token-env", "COPILOT_SDK_AUTH_TOKEN"], ENVIRON))

    assert "secret" not in shown


def test_a_folder_for_recordings_is_an_argument_or_a_variable() -> None:
    assert parse(["--record", "a"], {"JUMPSEAT_RECORD": "b"}).record == "a"
    assert parse([], {"JUMPSEAT_RECORD": "b"}).record == "b"
    assert parse(["--replay", "a"], {"JUMPSEAT_REPLAY": "b"}).replay == Replay("a")
    assert parse(["--replay-in-order", "--replay-delays"], {"JUMPSEAT_REPLAY": "b"}).replay == Replay(
        "b", True, True
    )
    assert parse([], {}).record is parse([], {}).replay is None


def test_recording_and_replaying_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        refused(capsys, "--record", "a", "--replay", "b") == "error: recording and replaying are mutually exclusive"
    )
    assert "require --replay" in refused(capsys, "--replay-delays")


def test_stdio_and_a_port_are_refused_together(capsys: pytest.CaptureFixture[str]) -> None:
    expected = "error: --stdio and --port are mutually exclusive"

    assert refused(capsys, "--stdio", "--port", "80") == expected
    assert refused(capsys, "--port", "0", "--headless", "--stdio") == expected


@pytest.mark.parametrize(
    "argument", ["--nonexistent-flag", "--embedded-host", "--ui-server", "-x", "serve", "--head", "--por=1"]
)
def test_an_unknown_argument_is_named(capsys: pytest.CaptureFixture[str], argument: str) -> None:
    assert refused(capsys, "--headless", argument, "--stdio") == f"error: unknown option {argument!r}"


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["--port", "http"], "error: argument --port: expected a number from 0 to 65535, got 'http'"),
        (["--port", "65536"], "error: argument --port: expected a number from 0 to 65535, got '65536'"),
        (["--port", "-1"], "error: argument --port: expected a number from 0 to 65535, got '-1'"),
        (["--port"], "error: argument --port: expected one argument"),
        (["--session-idle-timeout", "soon"], "error: argument --session-idle-timeout: invalid int value: 'soon'"),
        (["--stdio=yes"], "error: argument --stdio: ignored explicit argument 'yes'"),
    ],
)
def test_a_wrong_value_is_named_with_its_flag(
    capsys: pytest.CaptureFixture[str], argv: list[str], complaint: str
) -> None:
    assert refused(capsys, *argv) == complaint


def test_the_error_about_an_unknown_log_level_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    complaint = refused(capsys, "--log-level", "loud")

    assert complaint.startswith("error: argument --log-level: invalid choice: 'loud'")
    assert all(level in complaint for level in LOG_LEVELS)


def test_the_version_and_the_help_go_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, shown in ((["--version"], f"jumpseat {__version__}\n"), (["--help"], "--log-level")):
        with pytest.raises(SystemExit) as caught:
            parse(argv, {})
        assert caught.value.code == 0
        assert shown in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["acp"], ["--acp"], ["--acp", "--stdio"], ["--stdio", "--headless", "--acp"]])
def test_acp_is_served_on_stdio_by_flag_or_command(argv: list[str]) -> None:
    options = parse(argv, {"COPILOT_CONNECTION_TOKEN": "tcp_secret"})
    assert (options.acp, options.port, options.connection_token) == (True, None, None)
    assert not parse(["--stdio"], {}).acp


def test_acp_excludes_options_of_the_other_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--port" in refused(capsys, "--acp", "--port", "0")
    assert "--protocol" in refused(capsys, "acp", "--protocol", "2")
    assert "unknown option" in refused(capsys, "acp", "acp")
