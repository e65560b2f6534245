"""Regular expressions take time in proportion to the length of the input, hostile inputs included."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fuzz.patterns import Found, Unknown, find_patterns, slowest
from tests.support.cases import all_cases

EXAMPLES: Final = {
    "protocol/jumpseat_protocol/visible.py": {"mark": r"'\u200d'", "dash": r"'\u2013'"},
    "server/jumpseat/adapters/recording/masking.py": {"field": "_FIELD"},
    "server/jumpseat/adapters/wires/chat_quirks.py": {"length": "9"},
    "server/jumpseat/agent/model_calls/call_finder.py": {
        "tokens": "['<tool_call>', '[TOOL_CALLS]']",
        "mark": "'`'",
        "self": "type('', (), {'_fence': '```'})",
    },
    "server/jumpseat/agent/model_calls/xml_tools/reader.py": {"top": "Element('a', 'value')"},
    "server/jumpseat/agent/model_calls/xml_tools/scanner.py": {"fence": "'```'"},
    "server/jumpseat/agent/shell/syntax.py": {
        "texts": "['ls', 'tail']",
    },
    "server/jumpseat/agent/shell/runners.py": {
        "options": r"rf'-j\d*|-v|--target|\d+|{_TARGET}|{_DEFINITION}|-[RELEVQNj]\w*|\w[\w.|^$*-]*'",
        "operands": r"r'(?!)'",
    },
    "server/jumpseat/tools/edits/reading.py": {
        "gap": r"rf'(?:{_BLANK}|{_BREAK}|{_ESCAPED_BREAK}|\\t)+'",
        "encoded": "_ENTITY",
        "pair": r"r'\\\\|'",
    },
    "server/jumpseat/tools/edits/hunks.py": {"wanted": "'a b'"},
    "server/jumpseat/lsp/related.py": {"wanted": "['a', 'bc']"},
    "server/jumpseat/lsp/tools.py": {"symbol": "'a'"},
    "server/jumpseat/agent/secrets.py": {"prefixes": "['secret', 'secrets']"},
    "server/jumpseat/tools/syntax/html_tags.py": {"name": "b'script'"},
    "server/jumpseat/store/project/front_matter.py": {"separators": r"r'[,\s]+'"},
    "server/jumpseat/cli/lab/clumsy.py": {"tool": "type('', (), {'name': 'bash'})"},
    "server/jumpseat/tools/declared/placeholders.py": {"name": "'a'"},
}
"""Expressions for the variables of patterns that are put together at run time."""

OTHERS: Final = {
    "server/jumpseat/adapters/recording/replayer.py": "recordings are files of the user",
    "testkit/jumpseat_testkit/model/script.py": "scripts are files of the user",
    "testkit/jumpseat_testkit/model/scripted.py": "scripts are files of the user",
    "testkit/jumpseat_testkit/patterns.py": "scripts are files of the user",
    "server/jumpseat/agent/permissions/rules.py": "tests/agent/permissions/test_patterns.py has hostile paths",
    "server/jumpseat/tools/search/python_engine.py": "runs in a process of its own, which is ended in time",
}
"""Files with patterns that others write, and the reason why they need no example here."""


@pytest.mark.thorough
def test_no_pattern_takes_more_than_linear_time() -> None:
    found = list(find_patterns(EXAMPLES))
    assert len(found) > 300
    with all_cases() as case:
        for pattern in found:
            with case(pattern.place):
                match pattern:
                    case Unknown():
                        file = pattern.place.partition(":")[0]
                        assert file in OTHERS, f"EXAMPLES has no variables for {pattern.source}"
                    case Found():
                        slow = slowest(pattern.pattern, pattern.uses)
                        assert slow is None, f"{pattern.pattern.pattern!r} takes too long for {slow}"
