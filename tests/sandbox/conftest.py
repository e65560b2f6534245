"""Fixtures of the tests of sandboxes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumpseat.sandbox.view import TEMP_FOLDERS


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that confined commands see and may not write to: no project, and no temporary files."""
    bases = (Path.home() / ".cache" / "jumpseat-tests", Path(__file__).parents[2] / ".pytest_cache")
    seen = [base for base in bases if not any(base.resolve().is_relative_to(temp) for temp in TEMP_FOLDERS)]
    if not seen:
        pytest.skip("needs a home folder or a checkout that is not among the temporary files")
    folder = seen[0] / f"outside-{os.getpid()}"
    folder.mkdir(parents=True)
    yield folder
    shutil.rmtree(folder)
