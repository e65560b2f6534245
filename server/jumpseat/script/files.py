"""Playing a file, whichever kind of script it is."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from jumpseat.script.differences import difference
from jumpseat.script.patterns import ScriptError
from jumpseat.script.play import OUR_SERVER, Outcome, Playing, play
from jumpseat.script.steps import load_script
from jumpseat.script.transcript import Played, TranscriptError, is_transcript, play_transcript, read, write


async def play_file(path: Path, how: Playing | None = None, *, update: bool = False) -> Outcome:
    """Play a script or a recorded conversation; ``update`` writes the server's lines of the latter anew.

    Raises:
        ScriptError: the file is neither, or the server cannot be started.
    """
    how = how or Playing()
    if is_transcript(path):
        return await _play_transcript(path, how, update=update)
    if update:
        raise ScriptError("only transcripts can be written anew, and this is a script")
    return await play(load_script(path), path.stem, how)


async def _play_transcript(path: Path, how: Playing, *, update: bool) -> Outcome:
    recorded = read(path)
    started = time.monotonic()
    outcome = Outcome(path.stem, len(recorded))
    played = Played()
    with ExitStack() as stack:
        folder = how.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jumpseat-script-")))
        try:
            await play_transcript(recorded, folder, how.command or OUR_SERVER, played)
        except TranscriptError as error:
            outcome.failures.append(str(error))
        else:
            if update:
                write(path, played.lines)
            elif text := difference(recorded, played.lines):
                outcome.failures.append(text)
    outcome.failures += played.problems
    outcome.conversation, outcome.stderr = played.conversation, played.stderr
    outcome.seconds = time.monotonic() - started
    return outcome
