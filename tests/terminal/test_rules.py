"""Rules of the command line as the server is told of them."""

from __future__ import annotations

import pytest

from jumpseat_terminal.rules import Rule, RuleError, hidden_tools, parse_rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("bash", Rule("tool", "bash")),
        ("web_*", Rule("tool", "web_*")),
        ("tool(shell)", Rule("tool", "shell")),
        ("tool", Rule("tool", "tool")),
        ("shell", Rule("shell")),
        ("shell(git status)", Rule("shell", "git status")),
        (" write( src/** ) ", Rule("write", "src/**")),
        ("mcp(github:get_*)", Rule("mcp", "github:get_*")),
        ("shell(echo (x))", Rule("shell", "echo (x)")),
    ],
)
def test_rules_are_kinds_with_arguments_and_bare_names_are_tools(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


def test_tools_denied_by_name_are_not_offered() -> None:
    assert hidden_tools([parse_rule(one) for one in ("web_fetch", "b*", "shell(rm)", "write")]) == ["web_fetch"]


@pytest.mark.parametrize("text", ["", "shell(", "shell()", "two words", "fetch(x)"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(RuleError, match="is no rule"):
        parse_rule(text)
