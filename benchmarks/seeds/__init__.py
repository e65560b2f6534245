"""Projects with old errors, and the errors that edits bring into them, for ``benchmarks/lsp.py``."""

from __future__ import annotations

from typing import Final

from benchmarks.seeds.c import C
from benchmarks.seeds.go import GO
from benchmarks.seeds.java import JAVA
from benchmarks.seeds.python import PYTHON
from benchmarks.seeds.rust import RUST
from benchmarks.seeds.seed import Project
from benchmarks.seeds.typescript import TYPESCRIPT

PROJECTS: Final[dict[str, Project]] = {
    project.language: project for project in (PYTHON, TYPESCRIPT, GO, RUST, C, JAVA)
}
