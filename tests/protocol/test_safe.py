"""Text of models and tools cannot control the terminal or look like other text."""

from __future__ import annotations

import random

import pytest

from jumpseat_protocol.safe import exact, one_line, safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ntext", "plain\ntext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r\x1b\\x", "x"),
        ("\x9b2Jx", "x"),
        ("\x9d0;t\x9cx", "x"),
        ("\x1bcx", "x"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("bell\x07", "bell␇"),
        ("back\x08\x7f", "back␈␡"),
        ("\x1b", "␛"),
        ("\x1b[", ""),
        ("\u202etxt.exe", "<U+202E>txt.exe"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("half \ud800", "half <U+D800>"),
        ("日本語 👩‍💻", "日本語 👩‍💻"),
    ],
)
def test_control_sequences_are_removed_and_deceptive_characters_made_visible(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_no_control_character_is_left_in_random_text() -> None:
    choose = random.Random(7)
    alphabet = "\x1b[]0;?mJHP\\\x07\x9b\x9c\x9d\r\n\tab\x00\x7f\u202e日"
    for _ in range(5000):
        text = "".join(choose.choices(alphabet, k=choose.randrange(20)))
        left = {char for char in safe(text) if (ord(char) < 32 and char != "\n") or 0x7F <= ord(char) < 0xA0}
        assert left == set(), repr(text)
        assert "\n" not in one_line(text)


def test_text_to_be_approved_keeps_everything_visible() -> None:
    hidden = "echo \x1b]0;\nrm -rf /\n\x07 \x1b[8mx\x1b[0m\r"
    assert exact(hidden) == "echo ␛]0;\nrm -rf /\n␇ ␛[8mx␛[0m␍"
