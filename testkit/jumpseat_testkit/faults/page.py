"""The page of all faults, from the table: ``python -m jumpseat_testkit.faults.page > docs/script-faults.md``."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final

from jumpseat_testkit.faults.clients import CLIENT_FAULTS
from jumpseat_testkit.faults.table import FAULTS, Fault
from jumpseat_testkit.protocols import SPOKEN

_HEAD: Final = """# Peers with faults

For those who write clients and scripts: a small server that does one thing wrong.
It needs no model and no network, and plays the same short turn each time:
a session, a prompt, two pieces of an answer, a question about a tool call, its result, the end.

```console
$ jumpseat script --fault two_answers --protocol acp-1        # be that server, on standard input and output
$ jumpseat script --faults all hello.script.yaml              # which faults does this script find?
$ jumpseat script --faults all --protocol acp-1 --client "python my_client.py {peer}"
```

`{peer}` is replaced by the path of an executable that starts the server and ignores arguments of the client.
The client should open a session, send a prompt, allow the tool call, and exit with 0 after the turn.
If anything is wrong, it should exit with another code.

| outcome | meaning |
|---|---|
| `told` | the client has exited with an error, or the script has failed |
| `went on` | nothing was noticed |
| `hang` | the client still ran after `--within` seconds (default: 20) and was killed |
| `crash` | the client was killed by a signal |

A fault has to be `told`. Below the line "unusual, and right", a client has to go on.
The exit code is 0 if that is so for all kinds. `--fault none` is the server without a fault.
"""
_CLIENTS: Final = """
## Faults of clients

For those who write agents: {count} clients that play your script and do one thing wrong.
See [testing](testing.md#faulty-clients).

```console
$ jumpseat script --client-faults all editor.script.yaml --server "my-agent --acp"
```
"""
_COLUMNS: Final = {"copilot": "Copilot", "acp-1": "ACP 1", "acp-2": "ACP 2", "ahp": "AHP"}


def page() -> str:
    """Return the text of the page."""
    wrong = {kind: fault for kind, fault in FAULTS.items() if not fault.is_harmless}
    unusual = {kind: fault for kind, fault in FAULTS.items() if fault.is_harmless}
    heads = "| kind | the server | " + " | ".join(_COLUMNS.values()) + " |\n|---|---|" + "---|" * len(_COLUMNS)
    parts = [_HEAD, f"## {len(wrong)} faults\n", heads, *map(_row, wrong.items())]
    parts += ["\n## Unusual, and right\n", heads, *map(_row, unusual.items())]
    return "\n".join([*parts, *_clients()]) + "\n"


def _clients() -> list[str]:
    """Return the lines about faults of clients."""
    heads = (
        "| kind | the client sends | " + " | ".join(_COLUMNS.values()) + " | the agent |\n|---|---|" + "---|" * 5
    )
    rows = [
        f"| `{kind}` | {fault.about} | {_marks(fault.protocols)} |"
        f" {'may end' if fault.may_end else 'obeys all rules' if fault.is_lawful else 'goes on'} |"
        for kind, fault in CLIENT_FAULTS.items()
    ]
    return [_CLIENTS.format(count=len(CLIENT_FAULTS)), heads, *rows]


def _row(entry: tuple[str, Fault]) -> str:
    kind, fault = entry
    return f"| `{kind}` | {fault.about} | {_marks(fault.protocols)} |"


def _marks(protocols: Collection[str]) -> str:
    return " | ".join("x" if protocol in protocols else "" for protocol in SPOKEN)


if __name__ == "__main__":
    sys.stdout.write(page())
