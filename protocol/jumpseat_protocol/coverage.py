"""Write the coverage page: ``python -m jumpseat_protocol.coverage > docs/coverage.md``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, get_args

from jumpseat_protocol import sdk_options
from jumpseat_protocol.events import EventPayload
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.sdk_events import UNMADE_REQUESTS, UNSENT_EVENTS
from jumpseat_protocol.server_requests import SERVER_REQUESTS
from jumpseat_protocol.unserved import TABLES
from jumpseat_protocol.unsupported import NEUTRAL_ANSWERS, REASONS, REFUSALS, UNSUPPORTED_REQUESTS

OURS: Final = "jumpseat."
"""The prefix of methods that are not part of the Copilot SDK protocol."""

STATES: Final[Mapping[str, frozenset[str]]] = {
    "served": frozenset(name for name in CLIENT_REQUESTS if not name.startswith(OURS)),
    "neutral": frozenset(NEUTRAL_ANSWERS),
    "unsupported": frozenset(REFUSALS) | UNSUPPORTED_REQUESTS,
}

INTRODUCTION: Final = """\
# Coverage

Every request of the Copilot SDK protocol, up to the SDKs 1.0.27 (Python) and 1.0.14 (Node), and how this
server responds to it.

- **Served**: the request is implemented.
- **Neutral**: the subject of the request does not exist in this server, and the result reports that: an empty list,
  or "There is no such task."
- **Unsupported**: the response is an error that names the method. Only unknown methods are "unhandled".
  The last table has the reasons.

This page is generated from the tables in `protocol/jumpseat_protocol/`: `METHODS` in its modules,
`unsupported.py` and `unserved.py`.
"""


OPTIONS: Final = """\
## Options

The options of `session.create` and `session.resume` that these SDKs send, by the object that has them; `*` is any
entry of an array or object.

- **Served**: the option has its effect.
- **Neutral**: the option has no effect, because its subject does not exist in this server, or this server does in
  any case what it asks for.
- **Unsupported**: the option has no effect. A session that is opened with such options emits one `session.warning`
  that names them and the reasons, except for values that ask for what this server does in any case.
- **Refused**: the option restricts the session in a way that this server cannot keep to, so the request fails.
"""


MEMBERS: Final = """\
## Members without an effect

The members of all requests, including the options above, that these SDKs send and this server does not serve. The
states are those of options; a session has one warning about each member. A name is the end of the path of a member,
which begins with the method.
The same warning names members that this server does not know, of SDKs to come. Those whose names begin with
`expected`, `require`, `must` or `only` are refused: they make a request conditional.
"""


EVENTS: Final = """\
## Events and requests to clients

The events that these SDKs know, and the requests that they answer, which this server never sends. All others it
sends; `events.py` and `server_requests.py` have them.
"""


def page() -> str:
    """Return the page as Markdown."""
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
            "## Reasons",
            "",
            "| unsupported | because |",
            "|---|---|",
            *(f"| {_names(names)} | {reason} |" for names, reason in _reasons()),
            "",
            *_options(),
            *_members(),
            *_unsent(),
        ]
    )


def _reasons() -> Iterable[tuple[Iterable[str], str]]:
    """Yield the methods that are not supported, with the reason."""
    for reason, names in REASONS.items():
        yield names, reason
    for name, refusal in REFUSALS.items():
        yield [name], f'the response is "{refusal}"'


def _options() -> Iterable[str]:
    """Yield the lines about the options of ``session.create`` and ``session.resume``."""
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for parent, option, state in sdk_options.states():
        groups[parent][state].append(option.rpartition(".")[2])
    states = (*STATES, "refused")
    totals = {state: sum(len(group[state]) for group in groups.values()) for state in states}
    yield OPTIONS
    yield "| | options |"
    yield "|---|---:|"
    yield from (f"| {state} | {total} |" for state, total in totals.items())
    yield f"| all | {sum(totals.values())} |"
    yield ""
    yield f"| in | {' | '.join(states)} |"
    yield "|---|---|---|---|---|"
    for parent, group in groups.items():
        cells = "|".join(f" {_names(group[state])} " for state in states)
        yield f"| {f'`{parent}`' if parent else '(none)'} |{cells}|"
    yield ""


def _members() -> Iterable[str]:
    """Yield the lines about the members of all requests that are not served."""
    yield MEMBERS
    for number, (state, reasons) in enumerate(TABLES.items()):
        if number:
            yield ""
        yield f"| {state} | because |"
        yield "|---|---|"
        yield from (f"| `{option}` | {reason} |" for option, reason in reasons.items())
    yield ""


def _unsent() -> Iterable[str]:
    """Yield the lines about events and requests that are never sent."""
    sent = len(get_args(EventPayload)), sum(not name.startswith(OURS) for name in SERVER_REQUESTS)
    yield EVENTS
    yield "| | sent | never sent |"
    yield "|---|---:|---:|"
    tables = {"events": UNSENT_EVENTS, "requests to clients": UNMADE_REQUESTS}
    for (kind, table), count in zip(tables.items(), sent, strict=True):
        yield f"| {kind} | {count} | {sum(map(len, table.values()))} |"
    for kind, table in tables.items():
        yield ""
        yield f"| {kind} | because |"
        yield "|---|---|"
        yield from (f"| {_names(names)} | {reason} |" for reason, names in table.items())
    yield ""


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names, key=str.lower)) or "-"


def _order(namespace: str) -> tuple[bool, str]:
    """Sort the namespaces by name, with those of sessions last."""
    return namespace == "session" or namespace.startswith("session."), namespace.lower()


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - the purpose of the command
