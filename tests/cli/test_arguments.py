"""The command line: the flags that the SDKs pass, in any order, and errors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from jumpseat.cli.arguments import parse
from jumpseat.options import LOG_LEVELS, Options, Replay, TcpOptions
from jumpseat_protocol.version import __version__
from tests.support.cases import all_cases

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
        log_level="debug",
        auth_token="gho_secret",
        auto_login=False,
        allow_unasked=False,
        session_idle_s=60,
    )
    for flags in itertools.islice(itertools.permutations(NODE), 0, None, 997):
        assert parse(list(itertools.chain(*flags)), ENVIRON) == expected


def test_extra_arguments_can_be_first_or_last() -> None:
    first = parse(["--yolo", "--headless", "--no-auto-update", "--stdio"], {})
    last = parse(["--server", "--stdio", "--no-auto-update", "--yolo"], {})

    assert first == last == Options(environ={}, allow_unasked=True)


@pytest.mark.parametrize("mode", [["--headless"], ["--server"], ["--headless", "--server"], []])
def test_headless_and_server_are_synonyms_and_optional(mode: list[str]) -> None:
    assert parse([*mode, "--stdio"], {}) == Options(environ={})


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
    tcp = parse(argv, {}).tcp
    assert (tcp.port if tcp else None) == port


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_every_log_level_is_known(level: str) -> None:
    assert parse(["--stdio", "--log-level", level], {}) == Options(environ={}, log_level=level)


@pytest.mark.parametrize("argv", [[], ["--log-level", "debug"], ["--yolo"], ["--no-auto-update"]])
def test_without_a_mode_nothing_listens_and_the_modes_are_printed(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(argv, {})
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert all(mode in err for mode in ("jumpseat chat", "--headless --port", "--stdio", "jumpseat acp", "--help"))


TOKEN = {"COPILOT_CONNECTION_TOKEN": "tcp_secret"}


def test_who_is_let_in_depends_on_the_token_and_on_who_starts_the_server() -> None:
    by_hand = TcpOptions(named_tokens=True, same_user=False)
    cases: dict[str, tuple[list[str], Mapping[str, str], TcpOptions]] = {
        "a person": (["--headless"], {}, by_hand),
        "a person, with a token": (["--headless"], TOKEN, replace(by_hand, token="tcp_secret")),
        "a person, without": (["--headless", "--no-token"], {}, TcpOptions(named_tokens=False, same_user=True)),
        "a new SDK": (
            ["--headless", "--no-auto-update"],
            TOKEN,
            TcpOptions(token="tcp_secret", named_tokens=False),
        ),
        "an old SDK": (["--headless", "--no-auto-update"], {}, TcpOptions(named_tokens=False, same_user=True)),
        "the oldest SDK": (["--server"], {}, TcpOptions(named_tokens=False, same_user=True)),
        "the SDK for Rust": (
            ["--server", "--port", "0"],
            TOKEN,
            TcpOptions(token="tcp_secret", named_tokens=False),
        ),
    }
    with all_cases() as case:
        for name, (argv, environ, expected) in cases.items():
            with case(name):
                assert parse(argv, environ).tcp == expected
    assert parse(["--stdio"], TOKEN).tcp is None


def test_a_web_socket_port_is_served_alone_or_besides_tcp(capsys: pytest.CaptureFixture[str]) -> None:
    alone = parse(["--headless", "--ws-port", "0", "--ws-origin", "https://a.example"], {}).tcp
    assert alone == TcpOptions(serves_tcp=False, web_port=0, web_origins=("https://a.example",))
    assert parse(["--ws-port", "8080", "--port", "1"], {}).tcp == TcpOptions(port=1, web_port=8080)
    assert "mutually exclusive" in refused(capsys, "--stdio", "--ws-port", "0")
    assert "requires --ws-port" in refused(capsys, "--headless", "--ws-origin", "https://a.example")
    for origin in ("a.example", "https://a.example/path", "*", "null"):
        assert "expected an origin" in refused(capsys, "--headless", "--ws-port", "0", "--ws-origin", origin)


def test_a_host_beyond_loopback_requires_tls_and_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    tls = ["--tls-cert", "c.pem", "--tls-key", "k.pem"]
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        assert parse(["--headless", "--host", host], {}).tcp == TcpOptions(host=host)
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.com", ""):
        assert "requires --tls-cert and --tls-key" in refused(capsys, "--headless", "--host", host)
        assert parse(["--headless", "--host", host, *tls], {}).tcp == TcpOptions(host=host, tls=("c.pem", "k.pem"))
        assert parse(["--headless", "--host", host, "--behind-tls-proxy"], {}).tcp == TcpOptions(host=host)
        for without_token in ("--no-token", "--server"):
            complaint = refused(capsys, "--headless", "--host", host, *tls, without_token)
            assert "require a connection token" in complaint
    # The proxy may run as the same user as the server.
    assert "require a connection token" in refused(capsys, "--headless", "--behind-tls-proxy", "--no-token")


def test_options_of_tcp_that_do_not_fit_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "belong together" in refused(capsys, "--headless", "--tls-cert", "c.pem")
    assert "belong together" in refused(capsys, "--headless", "--tls-key", "k.pem")
    for argument in (["--host", "::1"], ["--no-token"], ["--tls-cert", "c"], ["--behind-tls-proxy"]):
        assert (
            refused(capsys, "--stdio", *argument)
            == f"error: {argument[0]} is for TCP: it excludes --stdio, and requires --port or --ws-port"
        )
    with pytest.raises(SystemExit):
        parse(["--headless", "--no-token"], TOKEN)
    assert "mutually exclusive" in capsys.readouterr().err


def test_the_auth_token_is_read_from_the_named_variable() -> None:
    assert parse(["--stdio", "--auth-token-env", "MINE"], {"MINE": "x", **ENVIRON}).auth_token == "x"
    assert parse(["--stdio", "--auth-token-env=MINE"], ENVIRON).auth_token is None
    assert parse(["--stdio"], ENVIRON).auth_token is None


def test_empty_variables_count_as_unset() -> None:
    environ = {"COPILOT_CONNECTION_TOKEN": "", "COPILOT_SDK_AUTH_TOKEN": "", "COPILOT_HOME": "", "A": "b"}

    options = parse(["--headless", "--auth-token-env", "COPILOT_SDK_AUTH_TOKEN"], environ)

    assert options == Options(environ={"A": "b"}, tcp=TcpOptions(), empty=frozenset(environ) - {"A"})
    assert options.whole_environ == environ


def test_no_secret_is_in_the_repr_of_the_options() -> None:
    shown = repr(parse(["--headless", "--auth-token-env", "COPILOT_SDK_AUTH_TOKEN"], ENVIRON))

    assert "secret" not in shown


def test_a_folder_for_recordings_is_an_argument_or_a_variable() -> None:
    assert parse(["--stdio", "--record", "a"], {"JUMPSEAT_RECORD": "b"}).record == "a"
    assert parse(["--stdio"], {"JUMPSEAT_RECORD": "b"}).record == "b"
    assert parse(["--stdio", "--replay", "a"], {"JUMPSEAT_REPLAY": "b"}).replay == Replay("a")
    assert parse(["--stdio", "--replay-in-order", "--replay-delays"], {"JUMPSEAT_REPLAY": "b"}).replay == Replay(
        "b", True, True
    )
    assert parse(["--stdio"], {}).record is parse(["--stdio"], {}).replay is None


def test_recording_and_replaying_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        refused(capsys, "--stdio", "--record", "a", "--replay", "b")
        == "error: recording and replaying are mutually exclusive"
    )
    assert "require --replay" in refused(capsys, "--stdio", "--replay-delays")


def test_stdio_and_a_port_are_refused_together(capsys: pytest.CaptureFixture[str]) -> None:
    expected = "error: --stdio and --port are mutually exclusive"

    assert refused(capsys, "--stdio", "--port", "80") == expected
    assert refused(capsys, "--port", "0", "--headless", "--stdio") == expected


@pytest.mark.parametrize(
    "argument", ["--nonexistent-flag", "--embedded-host", "--ui-server", "-x", "serve", "--head", "--por=1"]
)
def test_an_unknown_argument_is_named(capsys: pytest.CaptureFixture[str], argument: str) -> None:
    kind = "unknown option" if argument.startswith("-") else "unexpected argument"
    error = refused(capsys, "--headless", argument, "--stdio")
    assert error.partition(", did you mean ")[0] == f"error: {kind} {argument!r}"


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["--port", "http"], "error: argument --port: expected a number from 0 to 65535, got 'http'"),
        (["--port", "65536"], "error: argument --port: expected a number from 0 to 65535, got '65536'"),
        (["--port", "-1"], "error: argument --port: expected a number from 0 to 65535, got '-1'"),
        (["--port"], "error: argument --port: expected one argument"),
        (["--session-idle-timeout", "soon"], "error: argument --session-idle-timeout: invalid int value: 'soon'"),
        (["--session-idle-timeout", "-1"], "error: argument --session-idle-timeout: expected 0 or more, got '-1'"),
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
    assert (options.acp, options.tcp) == (True, None)
    assert not parse(["--stdio"], {}).acp


@pytest.mark.parametrize("argv", [["ahp"], ["--ahp"], ["--stdio", "--ahp"]])
def test_ahp_is_served_on_stdio_by_flag_or_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(argv, {})
    assert (options.ahp, options.acp, options.tcp) == (True, False, None)
    assert "--acp" in refused(capsys, *argv, "--acp")


def test_other_clients_are_served_beside_one_on_stdio() -> None:
    for name in ("acp", "--acp", "ahp", "--stdio --ahp"):
        options = parse([*name.split(), "--ws-port", "0"], {})
        assert (options.on_stdio, options.tcp) == (True, TcpOptions(serves_tcp=False, web_port=0))
    assert not parse(["--ws-port", "0"], {}).on_stdio


def test_acp_excludes_options_of_the_other_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--protocol" in refused(capsys, "acp", "--protocol", "2")
    assert "unexpected argument" in refused(capsys, "acp", "acp")
