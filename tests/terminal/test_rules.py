"""Permission rules on the command line."""

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
def test_rules_are_kinds_with_arguments_or_bare_tool_names(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


def test_tools_that_are_denied_as_a_whole_are_not_offered() -> None:
    def hidden(*rules: str) -> list[str]:
        return hidden_tools([parse_rule(rule) for rule in rules])

    assert hidden("web_fetch", "b*", "shell(rm)", "write(a)") == ["web_fetch"]
    assert hidden("write", "url") == ["create", "edit", "apply_patch", "web_fetch", "web_search"]
    assert "bash" in hidden("shell")
    assert hidden("*") == ["builtin:*", "mcp:*", "custom:*"]


@pytest.mark.parametrize("text", ["", "shell(", "shell()", "two words", "fetch(x)"])
def test_invalid_rules_are_refused(text: str) -> None:
    with pytest.raises(RuleError, match="invalid rule"):
        parse_rule(text)
