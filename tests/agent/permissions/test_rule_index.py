"""An index of rules finds what a search of all rules finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumpseat.agent.permissions.facts import gather_facts
from jumpseat.agent.permissions.paths import PathScope, PatternsOfRules
from jumpseat.agent.permissions.rule_index import RuleIndex
from jumpseat.agent.permissions.rules import Rule, allows, first_match, first_possible_match
from jumpseat.agent.shell.syntax import parse_shell
from jumpseat_protocol.permissions import (
    ReadPermission,
    ShellCommand,
    ShellPermission,
    UrlPermission,
    WritePermission,
)

ARGUMENTS = {
    "shell": ("git", "git push", "git push *", "/usr/bin/git", "GIT status", "curl", "rm:*", "*", "./run"),
    "url": ("example.com", "*.example.com", "com", "a.example.com", "127.0.0.1", "Example.COM"),
    "path": (
        "a", "a/b", "a/**", "**/b", "/**/B.txt", "*.txt", "**/*.t?t", "a*", "*b*", "link/x", "link", "linked", "/",
        "**", "/**", "a?/b", "a**b", "a/*/c", "../other",
    ),
}  # fmt: skip
LINES = (
    "git push origin", "git status", "/usr/bin/git push", "$X push", "cat a/b/c.txt link/x", "ls a", "cat *.txt",
    "curl http://a.example.com/x", "cp a/b linked/x", "echo example.com", "python3 x.py", "bash -c 'git push'",
    "rm -r a", "./run it", "g\\it push",
)  # fmt: skip
PATHS = ("a", "a/b", "a/b/c", "B.txt", "x.txt", "link/x", "linked/x", "ab", "other", "/etc/passwd")


def rules() -> st.SearchStrategy[list[Rule]]:
    def of(kind: str, arguments: tuple[str, ...]) -> st.SearchStrategy[Rule]:
        return st.builds(Rule, st.just(kind), st.none() | st.sampled_from(arguments))

    paths = ARGUMENTS["path"]
    kinds = [of("shell", ARGUMENTS["shell"]), of("url", ARGUMENTS["url"]), of("read", paths), of("write", paths)]
    return st.lists(st.one_of(*kinds, st.just(Rule("tool", "b*"))), max_size=8)


@st.composite
def requests(draw: st.DrawFn) -> ShellPermission | ReadPermission | WritePermission | UrlPermission:
    path = draw(st.sampled_from(PATHS))
    match draw(st.sampled_from(("shell", "read", "write", "url"))):
        case "read":
            return ReadPermission(intention="", path=path)
        case "write":
            return WritePermission(intention="", file_name=path, diff="")
        case "url":
            return UrlPermission(
                intention="", url=f"https://{draw(st.sampled_from(ARGUMENTS['url']))}/".replace("*", "x")
            )
        case _:
            line = draw(st.sampled_from(LINES))
            commands = [
                ShellCommand(identifier=command.identifier, read_only=command.read_only)
                for command in parse_shell(line).commands
            ]
            return ShellPermission(
                intention="",
                full_command_text=line,
                commands=commands,
                possible_paths=[],
                possible_urls=[],
                has_write_file_redirection=False,
                can_offer_session_approval=True,
            )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c.txt").touch()
    (folder / "linked").mkdir()
    (folder / "link").symlink_to(folder / "linked")
    (folder / "B.txt").touch()
    return folder


@pytest.mark.thorough
@settings(max_examples=1500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=rules(), request_=requests())
def test_the_same_rule_decides_with_and_without_an_index(
    folder: Path, rules: list[Rule], request_: ShellPermission | ReadPermission | WritePermission | UrlPermission
) -> None:
    facts = gather_facts(request_, "bash", PathScope(lambda: folder))
    patterns, index = PatternsOfRules(folder), RuleIndex(rules)
    assert index.first_match(facts, patterns) == first_match(rules, facts, patterns)
    assert index.first_possible_match(facts, patterns) == first_possible_match(rules, facts, patterns)
    assert allows(index.relevant(facts, patterns), facts, patterns) == allows(rules, facts, patterns)


def test_few_of_a_thousand_rules_are_looked_at(folder: Path) -> None:
    kinds = ("read", "write")
    long = [
        Rule(kind, f"{prefix}secret{n}{suffix}")
        for kind in kinds
        for prefix, suffix in (("", ""), ("**/*", ".x"), ("**/*", "*"))
        for n in range(300)
    ]
    long += [Rule("shell", f"program{n} *") for n in range(300)] + [
        Rule("url", f"*.host{n}.example") for n in range(300)
    ]
    index, patterns = RuleIndex(long), PatternsOfRules(folder)
    for path in ("a/b", "secret7", "a/mysecret12.x"):
        facts = gather_facts(ReadPermission(intention="", path=path), "view", PathScope(lambda: folder))
        assert len(index.relevant(facts, patterns, inside=True)) < 20
