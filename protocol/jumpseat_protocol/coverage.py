"""The coverage page: ``python -m jumpseat_protocol.coverage > docs/coverage.md``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.neutral import NEUTRAL_ANSWERS, REFUSALS
from jumpseat_protocol.unsupported import UNSUPPORTED_REQUESTS

OURS: Final = "jumpseat."
"""What methods begin with that the Copilot SDK protocol has not."""

STATES: Final[Mapping[str, frozenset[str]]] = {
    "served": frozenset(name for name in CLIENT_REQUESTS if not name.startswith(OURS)),
    "neutral": frozenset(NEUTRAL_ANSWERS),
    "unsupported": frozenset(REFUSALS) | UNSUPPORTED_REQUESTS,
}

INTRODUCTION: Final = """\
# Coverage

Every request of the Copilot SDK protocol, up to the SDKs 1.0.27 (Python) and 1.0.14 (Node), and what this server
does with it.

- **Served**: it does what it says.
- **Neutral**: what it asks about does not exist here, and the answer says so: an empty list, "no such task".
- **Unsupported**: an error that names the method. Only names that the protocol does not have are "unhandled".

This page is made from the tables in `protocol/jumpseat_protocol/`: `methods.py`, `neutral.py`, `unsupported.py`.
"""


def page() -> str:
    """The page as Markdown."""
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for state, methods in STATES.items():
        for method in methods:
            namespace, _, name = method.rpartition(".")
            groups[namespace][state].append(name)
    rows = [
        f"| {f'`{namespace}`' if namespace else '(none)'} |"
        + "|".join(f" {_names(groups[namespace][state])} " for state in STATES)
        + "|"
        for namespace in sorted(groups, key=_order)
    ]
    total = sum(len(methods) for methods in STATES.values())
    return "\n".join(
        [
            INTRODUCTION,
            "| | methods |",
            "|---|---:|",
            *(f"| {state} | {len(methods)} |" for state, methods in STATES.items()),
            f"| all | {total} |",
            "",
            "| namespace | served | neutral | unsupported |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names, key=str.lower)) or "-"


def _order(namespace: str) -> tuple[bool, str]:
    """Sessions last, as they are most of it."""
    return namespace == "session" or namespace.startswith("session."), namespace.lower()


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - printing is what it is for
