"""Install the archives in ``dist`` into empty environments, with each Python that is found, and run them.

``make installs`` builds the archives first. Requirements are downloaded; the demo itself runs offline.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")


def main() -> int:
    """Try each archive with each interpreter; return 1 if one fails, or if there is nothing to try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python", action="append", help="an interpreter; default: python3.11 to python3.14 on PATH"
    )
    arguments = parser.parse_args()
    # Archives of a platform have its name behind the version.
    sources = [file for file in ROOT.glob("dist/*.tar.gz") if file.name.count("-") == 1]
    archives = sorted([*ROOT.glob("dist/jumpseat-*.whl"), *sources])
    interpreters: list[str] = arguments.python or list(_interpreters())
    if len(archives) != 2 or not interpreters:
        print(f"error: {len(archives)} archives in dist, {len(interpreters)} interpreters", file=sys.stderr)
        return 1
    failed = 0
    for interpreter in interpreters:
        for archive in archives:
            problem = _try(interpreter, archive)
            failed += problem is not None
            print(f"{'ok' if problem is None else 'FAILED':7} {interpreter} {archive.name}", flush=True)
            if problem is not None:
                print(problem)
    return 1 if failed else 0


def _interpreters() -> Iterator[str]:
    for version in VERSIONS:
        found = shutil.which(f"python{version}")
        # A version manager may have a command for each version that it knows, installed or not.
        if (
            found is not None
            and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0
        ):
            yield found


def _try(interpreter: str, archive: Path) -> str | None:
    """Install ``archive`` and run what it has installed; return the output of the first command that fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = folder / "env" / "bin"
        # Nothing of this checkout and of this user may be found instead.
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COPILOT_"))}
        environ["HOME"] = name
        version = archive.name.removesuffix(".tar.gz").split("-")[1]
        commands = (
            ([interpreter, "-m", "venv", str(folder / "env")], ""),
            ([str(programs / "pip"), "--disable-pip-version-check", "install", "--quiet", str(archive)], ""),
            ([str(programs / "jumpseat"), "--version"], f"jumpseat {version}\n"),
            ([str(programs / "jumpseat"), "schema"], '"$schema"'),
            ([str(programs / "python"), "-m", "jumpseat_client.demo"], ""),
        )
        for command, expected in commands:
            # The caches of pip are in the real home folder.
            env = environ | ({"HOME": os.environ.get("HOME", name)} if command[0].endswith("pip") else {})
            done = subprocess.run(command, env=env, cwd=name, capture_output=True, text=True, check=False)
            if done.returncode != 0 or expected not in done.stdout:
                return (
                    f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
                )
    return None


if __name__ == "__main__":
    sys.exit(main())
