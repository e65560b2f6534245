"""Targets for command lines: parsing, and the judgement of permissions compared with a real bash.

Lines that the approvals of a session cover run in bash, each in a project of its own, beside canaries that no line
may read or change. Bash is confined by bubblewrap: a fault of the judgement harms nothing but the canaries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jumpseat.agent.permissions.approvals import ApprovalRecord
from jumpseat.agent.shell.syntax import MAX_LINE_CHARS, parse_shell
from jumpseat.sandbox.bubblewrap import find_bubblewrap
from jumpseat_protocol.permissions import SessionApproval
from tests.agent.permissions import attacks, hostile
from tests.agent.permissions.attacks import CANARY
from tests.agent.permissions.test_hostile_calls import decide, permissions, shell
from tests.fuzz.target import Check

APPROVED: Final = (
    "ls", "cat", "cd", "echo", "head", "tail", "wc", "sort", "cp", "mv", "rm", "mkdir", "touch", "true", "tee",
    "grep", "cut", "nl", "find", "printf", "git status", "make test",
)  # fmt: skip
_APPROVAL: Final = ApprovalRecord(SessionApproval(kind="commands", command_identifiers=list(APPROVED)))
STUBS: Final = ("git", "make", "curl", "python3", "sh", "bash", "env", "xargs", "perl", "awk", "sed", "dd", "tar")
"""Programs that lines might run, replaced by one that leaves a mark unless its first words are approved."""
REAL: Final = tuple(name for name in APPROVED if " " not in name and name not in ("cd", "echo", "printf", "true"))

BATCH: Final = 50
"""The number of projects that are prepared at a time, and the lines that one bash runs."""
LINE_S: Final = 2
"""Seconds after which a line is ended: some repeat forever."""
BATCH_S: Final = 2 * BATCH * LINE_S


def check_parsing(data: bytes) -> None:
    """Any line is parsed without an exception, the same again, and is uncertain or has commands."""
    text = data.decode("utf-8", "replace")
    line = parse_shell(text)
    assert line.segments
    assert line.commands
    assert line.certain or [segment.command.clear for segment in line.segments] == [False]
    assert line.opaque or line.certain
    assert parse_shell(text) == line
    assert not line.certain or len(text) <= MAX_LINE_CHARS


@contextmanager
def open_judgement() -> Generator[Check]:
    """Lines that approvals cover neither read nor change a canary, nor run a program that was not approved."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        judged = _Judged(Path(folder).resolve())
        try:
            yield judged.check
        finally:
            judged.run()


def lines() -> Iterator[bytes]:
    """Yield the hand-written lines of the tests."""
    for line in (*(line for some in attacks.LINES.values() for line in some), *hostile.LINES, *hostile.HARMLESS):
        yield line.encode("utf-8", "replace")


class _Judged:
    """The lines that were allowed and have not run yet, each with its project."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._allowed: list[tuple[str, Path]] = []
        self._count = 0
        self._bwrap = find_bubblewrap(os.environ)
        self._free: Path | None = None
        tools = folder / "tools"
        tools.mkdir()
        for name in REAL:
            (tools / name).symlink_to(shutil.which(name) or "/bin/false")
        for name in STUBS:
            (tools / name).write_text(
                '#!/bin/bash\ncase "${0##*/} $1" in "git status"|"make test") ;; *) echo ran >> "$MARKS" ;; esac\n'
            )
            (tools / name).chmod(0o755)

    def check(self, data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        # A null character cannot be passed to bash.
        if not self._bwrap or "\0" in text:
            return
        project = self._free or self._build()
        self._free = project
        with _home(project.parent / "home"):
            verdict = decide(permissions(project, approvals=[_APPROVAL]), shell(text))
        if verdict.status == "allowed":
            self._allowed.append((text, project))
            self._free = None
        if len(self._allowed) == BATCH:
            self.run()

    def _build(self) -> Path:
        """Build a project, and canaries outside of it."""
        self._count += 1
        top = self._folder / f"run{self._count}"
        project, outside = top / "all" / "project", top / "all" / "outside"
        for path in (project / "sub", project / "a" / "b" / "c", project / "dest", outside, top / "all" / "home"):
            path.mkdir(parents=True)
        (outside / "secret").write_text(f"{CANARY}\n")
        (outside / "victim").write_text(f"{CANARY}\n")
        (top / "all" / "home" / "secret").write_text(f"{CANARY}\n")
        for name in ("f", "g", "sub/f", "a/b/c/f"):
            (project / name).write_text("text\n")
        for name in ("evil.sh", "ls", "sub/cat"):
            (project / name).write_text('#!/bin/bash\necho ran >> "$MARKS"\n')
            (project / name).chmod(0o755)
        (project / "deep").symlink_to("a/b/c")
        (project / "up").symlink_to("..")
        (project / "sub" / "up").symlink_to("../..")
        (project / "linkdir").symlink_to("../outside")
        (project / "out.txt").symlink_to("../outside/victim")
        (project / "dest" / "f").symlink_to("../../outside/victim")
        (top / "marks").touch()
        return project

    def run(self) -> None:
        """Run all allowed lines and check their canaries.

        Raises:
            AssertionError: lines have read or changed a canary.
        """
        allowed, self._allowed = self._allowed, []
        if not allowed:
            return
        self._run_batch(allowed)
        harmful = [line for line, project in allowed if _harm(project)]
        for _, project in allowed:
            shutil.rmtree(project.parents[1], ignore_errors=True)
        assert not harmful, f"lines that approvals cover have touched a canary: {harmful!r}"

    def _run_batch(self, allowed: Sequence[tuple[str, Path]]) -> None:
        script: list[str] = []
        for line, project in allowed:
            top = project.parents[1]
            (top / "line").write_text(line, encoding="utf-8", newline="")
            bash = f"{shutil.which('timeout')} -s KILL {LINE_S} {shutil.which('bash')} --norc --noprofile"
            script.append(
                f"(cd {project} && export HOME={top}/all/home MARKS={top}/marks && ulimit -f 2048 &&"
                f' exec {bash} -c "$(<{top}/line)")'
                f" </dev/null >{top}/output 2>&1 &\nwait $!\n"
            )
        (self._folder / "script").write_text("".join(script))
        command = [
            *self._bwrap, "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--bind", str(self._folder), str(self._folder),
            "--ro-bind", str(self._folder / "tools"), str(self._folder / "tools"), "--dev", "/dev", "--proc",
            "/proc",
            "--unshare-net", "--unshare-pid", "--die-with-parent", "--chdir", str(self._folder),
            str(shutil.which("bash")), "--norc", "--noprofile", "script",
        ]  # fmt: skip
        done = subprocess.run(
            command,
            env={"PATH": str(self._folder / "tools"), "LANG": os.environ.get("LANG", "C.UTF-8")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BATCH_S,
            check=False,
        )
        assert all((project.parents[1] / "output").exists() for _, project in allowed), done.stderr.decode()


def _harm(project: Path) -> bool:
    """Return whether a canary was read, changed or removed, or a program ran that was not approved."""
    top = project.parents[1]
    outside = top / "all" / "outside"
    output = top / "output"
    return (
        (top / "marks").read_text() != ""
        or CANARY in (output.read_bytes().decode("utf-8", "replace") if output.exists() else "")
        or sorted(path.name for path in top.iterdir()) not in (_TOP, sorted([*_TOP, "output"]))
        or sorted(path.name for path in (top / "all").iterdir()) != ["home", "outside", "project"]
        or sorted(path.name for path in outside.iterdir()) != ["secret", "victim"]
        or any((outside / name).read_text() != f"{CANARY}\n" for name in ("secret", "victim"))
        or [path.name for path in (top / "all" / "home").iterdir()] != ["secret"]
        or any(CANARY.encode() in path.read_bytes() for path in project.rglob("*") if _is_own_file(path, project))
    )


_TOP: Final = ["all", "line", "marks"]


def _is_own_file(path: Path, project: Path) -> bool:
    return path.is_file() and path.resolve().is_relative_to(project)


@contextmanager
def _home(folder: Path) -> Generator[None]:
    """Let ``~`` be ``folder``, as it is for the lines."""
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = before


PIECES: Final = (
    *APPROVED, " ", " ", " ", " ", "\n", ";", "&&", "||", "|", "&", "(", ")", "{ ", "; }", "$(", "`", "'", '"',
    "\\", "\\\n", "#", "$x", "$HOME", "~", "~/secret", ">", ">>", "2>&1", "<", "<<<", "<<E\n", "\nE\n", "!",
    "if ", "; then ", "; fi", "f", "g", "sub", "..", "/", "../", "../outside/secret", "../outside/victim",
    "linkdir", "out.txt", "dest", "deep", "up", "./", "evil.sh", "-l", "-r", "-f ", "-t ", "--", "=", "x=",
    "PATH=. ", "$'", '$"', "{f,g}", "*", "?", "[a-z]", "\t", "\r", "\xa0", "\u2028", "case x in x) ", ";; esac",
    "f() ", "time ", "$((", "))", "{fd}>f", "&>f", ">&2", "<(", ">(", "for i in x; do ", "; done", "\\ ",
    "${x:-", "${", "}", "@", "%", "^", "-exec ", "-delete", "--files0-from=", "\\x2e\\x2e", "\\056", "cd -",
    "-P ", "-o", "curl", "python3",
)  # fmt: skip
