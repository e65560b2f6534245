"""Be a server with a fault: ``python -m jumpseat.script.faults KIND PROTOCOL``."""

import sys

from jumpseat.script.faults.peer import serve_fault
from jumpseat.script.protocols import SPOKEN


def main() -> int:
    """Serve the kind of fault in the arguments; return the exit code."""
    kind, name = sys.argv[1:]
    return serve_fault(kind, next(protocol for protocol in SPOKEN if protocol == name))


if __name__ == "__main__":
    sys.exit(main())
