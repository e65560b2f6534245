"""Write the page of errors to stdout."""

from __future__ import annotations

import sys

from tests.errors.page import page

sys.stdout.write(page())
