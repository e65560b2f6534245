"""The page of all faults, from the table: ``python -m jumpseat_testkit.faults.page > docs/script-faults.md``."""

from __future__ import annotations

import sys
from typing import Final

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
_COLUMNS: Final = {"copilot": "Copilot", "acp-1": "ACP 1", "acp-2": "ACP 2", "ahp": "AHP"}


def page() -> str:
    """Return the text of the page."""
    wrong = {kind: fault for kind, fault in FAULTS.items() if not fault.is_harmless}
    unusual = {kind: fault for kind, fault in FAULTS.items() if fault.is_harmless}
    heads = "| kind | the server | " + " | ".join(_COLUMNS.values()) + " |\n|---|---|" + "---|" * len(_COLUMNS)
    parts = [_HEAD, f"## {len(wrong)} faults\n", heads, *map(_row, wrong.items())]
    parts += ["\n## Unusual, and right\n", heads, *map(_row, unusual.items())]
    return "\n".join(parts) + "\n"


def _row(entry: tuple[str, Fault]) -> str:
    kind, fault = entry
    marks = ["x" if protocol in fault.protocols else "" for protocol in SPOKEN]
    return f"| `{kind}` | {fault.about} | {' | '.join(marks)} |"


if __name__ == "__main__":
    sys.stdout.write(page())
