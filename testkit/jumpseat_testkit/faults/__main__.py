"""Be a server with a fault: ``python -m jumpseat_testkit.faults KIND PROTOCOL``."""

import sys

from jumpseat_testkit.faults.peer import serve_fault
from jumpseat_testkit.protocols import SPOKEN


def main() -> int:
    """Serve the kind of fault in the arguments; return the exit code."""
    kind, name = sys.argv[1:]
    return serve_fault(kind, next(protocol for protocol in SPOKEN if protocol == name))


if __name__ == "__main__":
    sys.exit(main())
