"""Tests of the adapters."""

import pytest

# Its assertions compare whole answers and requests: a failure shows the difference.
pytest.register_assert_rewrite("tests.adapters.golden")
