"""Recognize known commands that are like other known ones: branches and commits of git, requests to localhost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jumpseat.agent.shell.likeness import LOCALHOST, NOTHING, Likeness, alike, is_output


def known_likeness(texts: Sequence[str], identifier: str) -> Likeness | None:
    """Return what a command has in common with others; ``None`` if nothing is stated here.

    ``identifier`` is that of a known command, and empty for others.
    """
    if texts[:1] == ["curl"]:
        return _request(texts)
    return _git(texts, identifier) if identifier.startswith("git ") else None


def _git(texts: Sequence[str], identifier: str) -> Likeness:
    match subcommand := identifier.split()[1]:
        case "commit":
            # A commit can add the files itself.
            return alike("git commit", gives=["git add"])
        case "add":
            return alike(identifier, gives=["git add"])
        case "checkout" | "switch":
            operands = [text for text in texts[2:] if not text.startswith("-")]
            options = [text for text in texts[2:] if text.startswith("-")]
            if len(operands) == 1 and _BRANCH.fullmatch(operands[0]):
                if options in (["-b"], ["-c"], ["--create"]):
                    return alike("git new branch")
                if not options and subcommand == "switch":
                    return alike("git switch")
                if not options:
                    return alike(gives=["git switch"])
            return NOTHING
        case "stash":
            making = [text for text in texts[2:] if not text.startswith("-")][:1] in ([], ["push"])
            restoring = texts[2:3] in (["pop"], ["apply"])
            return alike(gives=["git unstash"] if making else (), needs=["git unstash"] if restoring else ())
        case _:
            return alike(identifier)


_BRANCH: Final = re.compile(r"(?!.*\.\.)[A-Za-z][\w./-]*")


def _request(texts: Sequence[str]) -> Likeness:
    """Return what a request to localhost has in common with others: in a sandbox, localhost is its own."""
    left = list(texts[1:])
    hosts = 0
    while left:
        text = left.pop(0)
        if text in ("-o", "--output"):
            if not left or not is_output(left.pop(0)):
                return NOTHING
        elif text in ("-w", "--write-out"):
            if not left or re.search(r"%output|@", left.pop(0)):
                return NOTHING
        elif text in _WITH_VALUE:
            if not left or left.pop(0).startswith("@"):
                return NOTHING
        elif _URL.fullmatch(text):
            hosts += 1
        elif not _OPTION.fullmatch(text):
            return NOTHING
    return alike(LOCALHOST) if hosts else NOTHING


_WITH_VALUE: Final = frozenset({
    "-A", "-H", "-X", "-d", "-m", "-u", "--connect-timeout", "--data", "--data-binary", "--data-raw", "--header",
    "--json", "--max-time", "--request", "--retry", "--retry-delay",
})  # fmt: skip
_OPTION: Final = re.compile(
    r"-[sSfiIvkN]+|-X[A-Z]+|--(?:silent|show-error|fail|include|head|verbose|compressed|get|no-buffer|retry-connrefused)"
)
_URL: Final = re.compile(r"(?:https?://)?(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/[\w./?=&%+,:~!*'()-]*)?")
