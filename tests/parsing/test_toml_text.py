"""TOML is parsed in linear time: text that would take long is refused."""

from __future__ import annotations

import tomllib

import pytest

from jumpseat.parsing.toml_text import MAX_KEY_PARTS, parse_toml
from tests.support.cases import check_each

KEY = ".".join("a" * MAX_KEY_PARTS)
LONG_KEY = f"{KEY}.a"
LIKE_A_KEY = ".".join("a" * 100)

ACCEPTED = {
    "keys": f"{KEY} = 1\n[b]\n{KEY} = 2\n[[c]]\nx = {{ {KEY} = 3, y = 1.5 }}",
    "a comment": f"a = 1 # {LIKE_A_KEY}\n#{LIKE_A_KEY}\nb = 2",
    "a string": f'a = "{LIKE_A_KEY} \\" = " # {LIKE_A_KEY}',
    "a literal string": f"a = '{LIKE_A_KEY}\" = '",
    "a string of several lines": f'a = """\n{LIKE_A_KEY}\\"""\n"{LIKE_A_KEY}""""\nc = 1',
    "a literal string of several lines": f"b = '''{LIKE_A_KEY}''''\nc = 1",
    "numbers": f"a = [{', '.join(['1.5'] * 100)}]\nb = [\n{'1.5, '.join([''] * 100)}]",
}
REFUSED = {
    "a key": f"{LONG_KEY} = 1",
    "a key of a megabyte": ".".join("a" * 500_000),
    "a table": f"[{LONG_KEY}]",
    "an inline table": f"x = {{ a = 1, {LONG_KEY} = 1}}",
    "spaces": f"{' . '.join('a' * 40)} = 1",
    "quoted parts": '"=\\"\\n".' * 40 + "a = 1",
    "parts that are strings": "'\"'." * 40 + "a = 1",
    "a key after strings": f'a = """"""\nb = """x"""""\nc = \'\'\'y\'\'\'\'\'\n{LONG_KEY} = 1',
    "depth": "a = " + "[" * 100_000,
}


def test_only_keys_of_very_many_parts_are_refused() -> None:
    def check_accepted(text: str) -> None:
        assert parse_toml(text) == tomllib.loads(text)

    def check_refused(text: str) -> None:
        with pytest.raises(ValueError, match=r"expected keys of at most 32 parts|nested too deeply"):
            parse_toml(text)

    check_each(ACCEPTED, check_accepted)
    check_each(REFUSED, check_refused)
