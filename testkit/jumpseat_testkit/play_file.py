"""Play a file: a script, a recorded conversation, or a client's log."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from jumpseat_testkit.client_log import is_client_log, read_client_log
from jumpseat_testkit.differences import describe_differences
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.play import Outcome, play
from jumpseat_testkit.play_log import play_log
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.protocols import protocol_of
from jumpseat_testkit.steps import load_script
from jumpseat_testkit.transcript import Playback, TranscriptError, is_transcript, play_transcript, read, write


async def play_file(path: Path, options: PlayOptions | None = None, *, update: bool = False) -> Outcome:
    """Play a script, a recorded conversation or a client's log.

    ``update`` replaces the server's lines of a recorded conversation.

    Raises:
        ScriptError: the file is none of them, or the server cannot be started.
    """
    options = options or PlayOptions()
    if is_transcript(path):
        return await _play_transcript(path, options, update=update)
    if update:
        raise ScriptError("expected a recorded conversation to update, got a script or a log")
    if is_client_log(path):
        return await _play_log(path, options)
    if options.files is not None:
        raise ScriptError("expected a client's log to play with files, got a script")
    return await play(load_script(path), path.stem, options)


async def _play_log(path: Path, options: PlayOptions) -> Outcome:
    entries = read_client_log(path)
    started = time.monotonic()
    protocol = protocol_of(entry.message for entry in entries if entry.from_client)
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jumpseat-script-")))
        failures, server = await play_log(entries, folder, protocol, options.command, options.files)
    seconds = time.monotonic() - started
    return Outcome(path.stem, len(entries), failures, server.traffic, server.stderr, seconds)


async def _play_transcript(path: Path, options: PlayOptions, *, update: bool) -> Outcome:
    recorded = read(path)
    started = time.monotonic()
    outcome = Outcome(path.stem, len(recorded))
    playback, protocol = Playback(), protocol_of(message for direction, message in recorded if direction == "->")
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jumpseat-script-")))
        try:
            await play_transcript(recorded, folder, options.command or protocol.command, playback, protocol)
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
