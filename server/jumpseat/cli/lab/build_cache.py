"""Go's compiled standard library, so that the commands of a task take no longer than those of others.

It is made once per run of the lab, and each task gets links to it: no task sees what another one has compiled.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jumpseat.cli.lab.tasks import Task

FOLDER: Final = Path(".cache", "go-build")
"""The place of the cache in a home folder."""
WARM_S: Final = 600.0


class BuildCache:
    """The cache in ``folder``; without Go, or tasks in Go, it stays empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def warm(self, tasks: Sequence[Task]) -> None:
        """Run the check of an untouched project."""
        of_go = (task for task in tasks if task.needs == "go" and task.missing_program is None)
        task = next(of_go, None)
        command = next((check.command for check in task.checks if check.command), "") if task else ""
        if task is None or not command:
            return
        with tempfile.TemporaryDirectory(prefix="jumpseat-lab-", ignore_cleanup_errors=True) as name:
            task.lay(Path(name))
            try:
                subprocess.run(  # noqa: S602 - a command of the task, in its own folder
                    command,
                    shell=True,
                    cwd=name,
                    env={**os.environ, "GOCACHE": str(self._folder)},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=WARM_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                # The tasks compile it themselves.
                return

    def link(self, home: Path) -> None:
        """Link the cache into a home folder."""
        if self._folder.is_dir():
            shutil.copytree(self._folder, home / FOLDER, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        # Go never writes into a file of its cache; what changes from build to build has another name.
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
