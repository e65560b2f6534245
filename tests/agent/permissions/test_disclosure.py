"""What a person reads in a question: warnings of disguises in changes, names, addresses and arguments."""

from __future__ import annotations

import pytest

from jumpseat.agent.permissions.disclosure import OBEYED, disclose
from jumpseat.agent.permissions.rules import Facts
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    ReadPermission,
    UrlPermission,
    WritePermission,
)


def write(added: str, name: str = "notes.txt", *, protected: bool = False) -> WritePermission:
    diff = "".join(f"+{line}\n" for line in added.split("\n"))
    request = WritePermission(
        intention="Edit file", file_name=name, diff=f"--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@\n{diff}"
    )
    disclose(request, Facts("write", "create", protected=protected))
    return request


@pytest.mark.parametrize(
    ("added", "name", "words"),
    [
        ("if access != 'user\u202e \u2066# check\u2069 \u2066':", "a.py", "The change contains characters"),
        ("x = '\u200bhidden'", "a.py", "U+200B"),
        ("p\u0430ckage = 1", "a.py", "U+0430"),
        ("print()\x1b[8m", "a.py", "U+001B"),
        ("x = 1" + " " * 3000 + "; import os", "a.py", "Long white space"),
        ("x", "notes\u202egpj.exe", "The name contains characters"),
        ("x", "p\u0430ckage.json", "The name contains characters"),
    ],
)
def test_a_disguise_in_a_change_or_its_name_is_a_warning(added: str, name: str, words: str) -> None:
    assert words in (write(added, name).warning or "")


@pytest.mark.parametrize(
    "added",
    [
        "def f():\n    return 'a — b … “c”'",
        "Grüße, naïve, 价格：１２，“好”。\u3000",  # noqa: RUF001 - these are the letters of a language
        "Привет, мир",
        "ok\r",
        "\t" * 20 + "deep",
    ],
)
def test_ordinary_text_of_any_language_is_no_disguise(added: str) -> None:
    request = write(added + "\nnext")
    assert (request.warning, request.can_offer_session_approval) == (None, True)


def test_a_file_that_programs_obey_says_so_and_offers_no_wider_approval() -> None:
    request = write("{}", ".vscode/settings.json", protected=True)
    assert (request.warning, request.can_offer_session_approval) == (OBEYED, False)


def test_an_address_and_arguments_show_what_they_are() -> None:
    url = UrlPermission(intention="Open", url="https://g\u0456thub.com/x")
    mcp = McpPermission(server_name="s", tool_name="t", tool_title="T", read_only=False, args={"a": ["b\u202e"]})
    own = CustomToolPermission(tool_name="t", tool_description="d", args={"k\u200b": 1})
    named = McpPermission(server_name="g\u0456thub", tool_name="t", tool_title="T", read_only=False)
    before = UrlPermission(intention="Open", url="https://a.example", redirected_from="https://g\u0456thub.com/x")
    plain = UrlPermission(intention="Open", url="https://example.org/x")
    for request in (url, mcp, own, named, before, plain):
        disclose(request, Facts("url", "t"))
    assert "xn--" in (url.warning or "")
    assert "U+202E" in (mcp.warning or "")
    assert "U+200B" in (own.warning or "")
    assert named.warning == "A name contains characters that are invisible or imitate others: U+0456"
    assert "The address before was" in (before.warning or "")
    assert "xn--" in (before.warning or "")
    assert plain.warning is None


def test_a_read_a_memory_and_a_call_of_a_hook_show_disguises() -> None:
    read = ReadPermission(intention="View", path="/etc/notes\u202etxt.cod")
    memory = MemoryPermission(fact="tests run with make", reason="asked\u200b")
    hook = HookPermission(tool_name="bash", tool_args={"command": "a\u2066"})
    for request in (read, memory, hook):
        disclose(request, Facts(request.kind, "t"))
    found = [request.warning.rpartition(" ")[2] for request in (read, memory, hook) if request.warning]
    assert found == ["U+202E", "U+200B", "U+2066"]
