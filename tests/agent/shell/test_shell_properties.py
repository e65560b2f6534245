"""Compare the parsed commands with bash itself, which runs stub programs that record their names."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpseat.agent.permissions.paths import PatternsOfRules
from jumpseat.agent.permissions.rules import Facts, Rule, allows, host_of, parse_rule
from jumpseat.agent.shell.commands import verbatim_command
from jumpseat.agent.shell.syntax import ShellSegment, parse_shell

BASH = shutil.which("bash")
NAMES = ("ls", "rm", "cat", "id")
PIECES = [
    *NAMES, *(" " for _ in range(12)), "\n", ";", "&&", "||", "|", "&", "|&", "(", ")", "{ ", "; }", "$(", ")", "`",
    "'", '"', "\\", "\\\n", "#", "$x", ">f", "2>&1", "<f", "<<<", "<<E\n", "\nE\n", "!", "if ", "; then ",
    "; fi", "x",
    "-l", "=", "x=", "$'", '$"', "{ls,x}", "[ ", "[[ ", " ]", "*", "\t", "\r", "\xa0", "\u2028", "case x in x) ",
    ";; esac", "f() ", "time ", "$((", "))", "{fd}>f", "&>f", ">&2", "<(", ">(", "for i in x; do ", "; done", "\\ ",
    "${x:-", "}", "\x0b", ";;", "@", "%", "^",
]  # fmt: skip


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    for name in NAMES:
        (folder / name).write_text(f'#!/bin/sh\nprintf "%s " {name} >> "$JOURNAL"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=1500)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=2, max_size=9))
def test_bash_runs_only_programs_that_were_found(stubs: Path, pieces: list[str]) -> None:
    text = "".join(pieces)
    line = parse_shell(text)
    if not line.certain or any(not segment.command.clear for segment in line.segments):
        return
    journal = stubs / "journal"
    journal.write_text("")
    subprocess.run(
        # Wait for background jobs.
        [str(BASH), "--norc", "--noprofile", "-c", f"{text}\nwait"],
        cwd=stubs.parent,
        env={"PATH": str(stubs), "JOURNAL": str(journal)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert set(journal.read_text().split()) <= {segment.command.identifier for segment in line.segments}


@given(text=st.text(max_size=200))
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    line = parse_shell(text)
    assert line.segments
    assert line.certain or [segment.command.clear for segment in line.segments] == [False]


@given(
    names=st.lists(st.sampled_from(["ls", "rm", "git status", "cat"]), min_size=1, max_size=5),
    allowed=st.sets(st.sampled_from(["ls", "rm", "git status", "cat"])),
    glue=st.sampled_from([" && ", "; ", " | ", " || ", "\n", " & "]),
)
def test_a_line_is_allowed_if_every_part_is_allowed(names: list[str], allowed: set[str], glue: str) -> None:
    line = parse_shell(glue.join(names))
    rules = [Rule("shell", name) for name in sorted(allowed)]
    facts = Facts("shell", "bash", segments=line.segments)
    filtered = names[:1] + [name for name in names[1:] if not (glue == " | " and name == "cat")]
    assert allows(rules, facts, PatternsOfRules(Path("/"))) == (set(filtered) <= allowed)


@given(text=st.text(min_size=1).filter(lambda text: text.strip() == text), rule=st.text(min_size=1))
def test_only_its_own_text_allows_a_verbatim_command(text: str, rule: str) -> None:
    facts = Facts("shell", "bash", segments=(ShellSegment("ls", verbatim_command(text)),))
    if not rule.endswith(" *"):
        assert allows([Rule("shell", rule)], facts, PatternsOfRules(Path("/"))) == (
            rule.strip().removesuffix(":*") == text
        )


@given(host=st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){1,3}", fullmatch=True), rest=st.text(max_size=20))
def test_the_host_of_a_url_does_not_include_the_path(host: str, rest: str) -> None:
    assert host_of(f"https://{host}/{rest}") in (host, None)


def test_an_ipv6_address_is_a_host_with_and_without_brackets() -> None:
    assert host_of("fe80::1") == host_of("[fe80::1]:80/a") == host_of("http://[FE80::1]/") == "fe80::1"
    assert host_of("http://fe80::1/") is None


@given(text=st.text())
def test_a_rule_survives_a_round_trip_or_is_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        rule = parse_rule(text)
        assert parse_rule(str(rule)) == rule
