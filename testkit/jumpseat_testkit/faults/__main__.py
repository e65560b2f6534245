"""Be a server with a fault: ``python -m jumpseat_testkit.faults KIND PROTOCOL``."""

import sys

from jumpseat_testkit.faults.peer import serve_fault
from jumpseat_testkit.protocols import SPOKEN

if __name__ == "__main__":
    kind, name = sys.argv[1:]
    sys.exit(serve_fault(kind, next(protocol for protocol in SPOKEN if protocol == name)))
