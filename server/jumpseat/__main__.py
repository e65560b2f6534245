"""The ``jumpseat`` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Parse the arguments first: help, version and mistakes cost no imports."""
    from jumpseat.cli import parse, wants_schema

    if wants_schema(sys.argv[1:]):
        from contextlib import suppress

        from jumpseat_protocol.schema import encoded

        # Whoever reads the beginning only has what it wants.
        with suppress(BrokenPipeError):
            sys.stdout.buffer.write(encoded())
        return
    options = parse(sys.argv[1:], os.environ)
    from jumpseat.app import run

    sys.exit(run(options))


if __name__ == "__main__":
    main()
