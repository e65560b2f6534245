"""``python -m jumpseat_testkit``: the command."""

import sys

from jumpseat_testkit.command import main

if __name__ == "__main__":
    sys.exit(main())
