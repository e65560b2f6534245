"""Text that a person judges contains no character that is invisible or looks like another."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from jumpseat_protocol.visible import (
    deceptive_characters,
    has_hidden_parts,
    on_one_line,
    visible,
    visible_url,
    without_padding,
)
from tests.support.cases import check_each

SHOWN = {
    "plain text, naïve Привет 日本語 δ": "plain text, naïve Привет 日本語 δ",
    "👩\u200d💻 ✨\ufe0f": "👩\u200d💻 ✨\ufe0f",
    "a\u200db": "a<U+200D>b",
    "line\n\tindented": "line\n\tindented",
    "\x1b[2K\r\x7f\x9b": "␛[2K␍␡<U+009B>",
    "\u202etxt.exe": "<U+202E>txt.exe",
    "soft\u00adhyphen": "soft<U+00AD>hyphen",
    "tag \U000e0041": "tag <U+E0041>",
    "p\u0430ypal": "p<U+0430>ypal",
    "a\u2215b": "a<U+2215>b",
    "\uff4d \U0001d41a": "<U+FF4D> <U+1D41A>",
    "\u0261it \u217cs ca\u2113": "<U+0261>it <U+217C>s ca<U+2113>",
    "g\u0131t \u0131\u015f\u0131k": "g<U+0131>t \u0131\u015f\u0131k",
    "x \u01c0 sh \u2758 a\u2571b": "x <U+01C0> sh <U+2758> a<U+2571>b",
    "rm \u2013rf \u2014force a \u2013 b 1\u20132": "rm <U+2013>rf <U+2014>force a \u2013 b 1\u20132",
    "a\U00016fe4\U0001d159b": "a<U+16FE4><U+1D159>b",
    "half \ud800": "half <U+D800>",
}


def test_invisible_and_imitating_characters_are_shown_by_their_numbers() -> None:
    for text, shown in SHOWN.items():
        assert visible(text) == shown
        assert bool(deceptive_characters(text)) == (text != shown), text


@pytest.mark.thorough
def test_no_format_or_control_character_of_unicode_remains() -> None:
    hidden = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs")
        and chr(code) not in " \t\n"
    ]
    assert not set(visible("".join(hidden))) & set(hidden)


def test_long_white_space_is_replaced_by_its_length() -> None:
    padded = f"ls{' ' * 3000}; rm x"
    assert without_padding(padded) == "ls<3000 spaces>; rm x"
    assert without_padding("ls" + "\n" * 100 + "rm x") == "ls\n<99 empty lines>\nrm x"
    assert has_hidden_parts(padded)
    check_each(
        {text: text for text in ("a\n\n\nb", "def f():\n" + " " * 40 + "return 1", "")},
        lambda text: _unchanged(text),
    )


def _unchanged(text: str) -> None:
    assert without_padding(text) == text
    assert not has_hidden_parts(text)


def test_a_description_is_one_line_of_limited_length() -> None:
    assert on_one_line("Show it\n\n  git status\n\x1b[2K") == "Show it git status ␛[2K"
    assert len(on_one_line("x" * 10_000)) == 500


def test_the_host_of_a_url_in_other_letters_is_shown_in_ascii() -> None:
    assert visible_url("https://example.com/ä") == "https://example.com/ä"
    shown = visible_url("https://\u0430\u0440\u0440\u04cf\u0435.com/login")
    assert shown.endswith("(host: xn--80ak6aa92e.com)")
