"""Parsing of bash command lines."""

from __future__ import annotations

import pytest

from jumpseat.agent.shell.commands import ParsedCommand
from jumpseat.agent.shell.syntax import parse_shell


def test_a_simple_command_can_be_approved_for_the_session() -> None:
    line = parse_shell("cat 'my file.txt' src/a.py")
    (segment,) = line.segments
    assert (segment.text, segment.command) == ("cat 'my file.txt' src/a.py", ParsedCommand("cat", read_only=True))
    assert line.possible_paths == line.words == ("my file.txt", "src/a.py")
    assert line.possible_urls == ()
    assert line.possible_commands == (("cat", "my file.txt", "src/a.py"),)
    assert not line.has_write_file_redirection
    assert line.can_offer_session_approval
    assert line.certain
    assert line.reach_known
    assert not line.opaque


@pytest.mark.parametrize(
    ("command", "identifiers"),
    [
        ("echo $(rm x)", ["echo", "rm"]),
        ('echo "a $(rm x) b"', ["echo", "rm"]),
        ("echo `rm x`", ["echo", "rm"]),
        ("(ls)", ["ls"]),
        ("{ ls; rm x; }", ["ls", "rm"]),
        ("if true; then ls; else rm x; fi", ["true", "ls", "rm"]),
        ("while true; do rm x; done", ["true", "rm"]),
        ("! ls", ["ls"]),
        ("cat <<< $(rm x)", ["cat", "rm"]),
        ("ls &\nrm x", ["ls", "rm"]),
    ],
)
def test_commands_are_found_in_every_position(command: str, identifiers: list[str]) -> None:
    line = parse_shell(command)
    assert [segment.command.identifier for segment in line.segments] == identifiers
    assert line.certain


def test_a_compound_line_is_split() -> None:
    line = parse_shell("git status && npm run build; ls | wc -l || echo no & sleep 1\nmake all")
    assert tuple(segment.text for segment in line.segments) == (
        "git status",
        "npm run build",
        "ls",
        "wc -l",
        "echo no",
        "sleep 1",
        "make all",
    )
    assert [(c.identifier, c.read_only) for c in line.commands] == [
        ("git status", True),
        ("npm run build", False),
        ("ls", True),
        ("wc", True),
        ("echo", True),
        ("sleep", True),
        ("make all", False),
    ]


@pytest.mark.parametrize(
    ("command", "identifier", "read_only"),
    [
        ("echo one", "echo", True),
        ("ls *.py ~/x", "ls", True),
        ("echo 'a > b; c' \"d && e\" \\; \\>", "echo", True),
        ("echo hi # and more; rm x", "echo", True),
        ("echo it#is", "echo", True),
        ("ls;", "ls", True),
        ("sleep 5 &", "sleep", True),
        ("ls 2>&1 >/dev/null", "ls", True),
        ("wc -l < data.txt", "wc", True),
        ("git log --oneline -5", "git log", True),
        ("git commit -m 'x; y'", "git commit", False),
        ("docker compose logs -f web", "docker compose logs", False),
        ("./gradlew test --info", "./gradlew test", False),
        (".venv/bin/python -m pytest -x", ".venv/bin/python -m pytest", False),
        ("npx eslint --fix src", "npx eslint --fix", False),
        ("make -j4 test", "make test", False),
        ("sed -n '1,20p' x", "sed -n", True),
        ("git --no-pager log -3", "git log", True),
        ("rm -rf build", "rm -r", False),
        ("l\\s -l", "ls", True),
        ("ls \\\n -l", "ls", True),
        ("find . -name '*.py'", "find", True),
    ],
)
def test_a_command_has_an_identifier_for_approvals(command: str, identifier: str, read_only: bool) -> None:
    line = parse_shell(command)
    assert [(c.identifier, c.read_only) for c in line.commands] == [(identifier, read_only)]
    assert line.can_offer_session_approval
    assert not line.has_write_file_redirection


@pytest.mark.parametrize(
    "command",
    [
        "sudo ls",
        "env X=1 ls",
        "X=1 ls",
        'X="1" ls',
        "xargs rm",
        "/bin/bash -c ls",
        "python3 -c 'print(1)'",
        "git -c core.pager=x log",
        "git --version",
        "git log --output=x",
        "git diff --outp x",
        "find . -delete",
        "find . -exec rm {} +",
        "find {.,-delete}",
        "sort -uo x y",
        "printf -v PATH x",
        "export PATH=/x",
        "uv run python x.py",
        "$CMD x",
        "{ls,-l}",
        "~/bin/x",
        "cat < /dev/tcp/host/80",
        "sed -i s/a/b/ x",
        "ls $HOME",
        "./run.sh --fast",
        "mytool status",
        "npm install left-pad",
        "tar -xf x.tar",
        "git apply x.patch",
        "npm run deploy staging",
        "make test install",
    ],
)
def test_a_command_that_may_do_anything_is_identified_by_its_whole_text(command: str) -> None:
    assert parse_shell(command).commands == (ParsedCommand(command, read_only=False),)


@pytest.mark.parametrize(
    "command",
    [
        "echo ${X:-$(rm x)}",
        "echo $((1 + 1))",
        "echo $'a'",
        "bash <(ls)",
        "cat <(ls) > >(sh)",
        "cd x; cat <(ls)",
        "cat <<EOF\nrm x\nEOF",
        "f() { ls; }",
        "for f in *; do rm $f; done",
        "[[ -f x ]]",
        "echo 'open",
        'echo "open',
        "echo open \\",
        "ls >",
        "ls {fd}>x",
        "case x in x) ls;; esac",
        "ls \0",
        "",
        " # nothing",
        "echo " + "x" * 100_000,
        ")(",
        "<(>",
        ">",
    ],
)
def test_an_uncertain_line_is_one_verbatim_command(command: str) -> None:
    line = parse_shell(command)
    assert line.commands == (ParsedCommand(command.strip(), read_only=False),)
    assert [segment.text for segment in line.segments] == [command.strip()]
    assert not line.can_offer_session_approval


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("echo x > out.txt", ("out.txt",)),
        ("echo x >> 'a b'", ("a b",)),
        ("echo x 2>err", ("err",)),
        ("echo x &> all", ("all",)),
        ("echo x &>> all", ("all",)),
        ("echo x >| out", ("out",)),
        ("echo x >& out", ("out",)),
        ("cat <> both", ("both",)),
        ("> empty", ("empty",)),
        ("echo x >$OUT", ("$OUT",)),
    ],
)
def test_a_redirection_into_a_file_is_not_covered_by_the_command(command: str, paths: tuple[str, ...]) -> None:
    line = parse_shell(command)
    assert line.has_write_file_redirection
    assert line.possible_paths == paths
    assert line.commands == (ParsedCommand(command, read_only=False),)
    assert not line.can_offer_session_approval


@pytest.mark.parametrize("command", ["cat <(echo x > y)", "echo $(ls > x)", "(ls > x)", "echo 'open > x"])
def test_redirections_in_uncertain_lines_are_assumed_to_write(command: str) -> None:
    assert parse_shell(command).has_write_file_redirection


def test_everything_that_looks_like_a_path_or_url_is_displayed() -> None:
    line = parse_shell("curl -o ./x.html --config=/etc/c https://example.com/a?b=1. 'http://b.org' README.md word")
    assert line.possible_urls == ("https://example.com/a?b=1", "http://b.org")
    assert line.possible_paths == ("./x.html", "/etc/c", "README.md")
    assert parse_shell("rm word").possible_paths == ("word",)
    assert parse_shell("/usr/bin/x ..").possible_paths == ("/usr/bin/x", "..")
