"""Play a file: a script or a recorded conversation."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from jumpseat.script.differences import describe_differences
from jumpseat.script.patterns import ScriptError
from jumpseat.script.play import OUR_SERVER, Outcome, PlayOptions, play
from jumpseat.script.steps import load_script
from jumpseat.script.transcript import Playback, TranscriptError, is_transcript, play_transcript, read, write


async def play_file(path: Path, options: PlayOptions | None = None, *, update: bool = False) -> Outcome:
    """Play a script or a recorded conversation; ``update`` replaces the server's lines of a recorded conversation.

    Raises:
        ScriptError: the file is neither, or the server cannot be started.
    """
    options = options or PlayOptions()
    if is_transcript(path):
        return await _play_transcript(path, options, update=update)
    if update:
        raise ScriptError("expected a recorded conversation to update, got a script")
    return await play(load_script(path), path.stem, options)


async def _play_transcript(path: Path, options: PlayOptions, *, update: bool) -> Outcome:
    recorded = read(path)
    started = time.monotonic()
    outcome = Outcome(path.stem, len(recorded))
    playback = Playback()
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jumpseat-script-")))
        try:
            await play_transcript(recorded, folder, options.command or OUR_SERVER, playback)
        except TranscriptError as error:
            outcome.failures.append(str(error))
        else:
            if update:
                write(path, playback.lines)
            elif text := describe_differences(recorded, playback.lines):
                outcome.failures.append(text)
    outcome.failures += playback.problems
    outcome.conversation, outcome.stderr = playback.conversation, playback.stderr
    outcome.seconds = time.monotonic() - started
    return outcome
