"""The addresses of providers, as they are sent."""

from __future__ import annotations

from typing import Final

import pytest

from jumpseat.adapters.transport.url import InvalidURL, Url, parse_url
from tests.support.cases import check_each

SENT: Final[dict[str, Url]] = {
    "http://h": Url("http", "h", None, "/"),
    "HTTP://H.Example:80/V1?Q=1#part": Url("http", "h.example", None, "/V1?Q=1"),
    "https://h:80/": Url("https", "h", 80, "/"),
    "http://[FD00::1]:8080/v1": Url("http", "fd00::1", 8080, "/v1"),
    "http://bücher.example/": Url("http", "xn--bcher-kva.example", None, "/"),
    "http://h/a b/ä/{m}:do?x={ä}": Url("http", "h", None, "/a%20b/%C3%A4/%7Bm%7D:do?x={%C3%A4}"),
    "http://h/%2F%20%zz/100%": Url("http", "h", None, "/%2F%20%25zz/100%25"),
    "http://me%40x:a%3Ab@h/": Url("http", "h", None, "/", "me@x", "a:b"),
    "model.example/v1": Url("", "", None, "model.example/v1"),
}
INVALID: Final = (
    *("http://h:port/", "http://h:65536/", "http://h ost/", "http://h%41/", "http://[::1/", "http://[::g]/"),
    *("http://h\r\nX: 1/", "http://h/\t", "http://fd00::1/", "http://a..é/"),
)


def test_a_url_is_sent_in_ascii_with_its_host_in_lower_case() -> None:
    def check(case: tuple[str, Url]) -> None:
        text, expected = case
        assert parse_url(text) == expected

    check_each({text: (text, expected) for text, expected in SENT.items()}, check)


def test_a_url_is_shown_without_its_user_and_password() -> None:
    assert str(parse_url("https://me:secret@[::1]:8443/v1?x=1")) == "https://[::1]:8443/v1?x=1"


def test_a_url_that_cannot_be_sent_is_refused() -> None:
    def check(text: str) -> None:
        with pytest.raises(InvalidURL):
            parse_url(text)

    check_each({repr(text): text for text in INVALID}, check)
