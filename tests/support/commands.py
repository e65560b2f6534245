"""Run a command of ``jumpseat`` for people in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from jumpseat.cli.commands import load_command
from jumpseat.options import Options
from jumpseat_transcript.transcript import Transcript


def run_command(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> int:
    """Run the command in ``argv`` and return its exit code."""
    command = load_command(argv, os.environ if environ is None else environ, _serve, _show)
    assert command is not None
    return command()


def _serve(options: Options) -> int:
    raise AssertionError(f"the command started a server: {options}")


def _show(transcript: Transcript, *, full: bool) -> None:
    raise AssertionError("the command showed a transcript")
