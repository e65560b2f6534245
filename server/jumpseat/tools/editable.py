"""Reading text files that a tool is about to change: on the disk, in an editor, or virtual ones of the session."""

from __future__ import annotations

import os
import stat

import anyio.to_thread
from msgspec import Struct

from jumpseat.errors import StoreError
from jumpseat.tools.files import is_binary, problem
from jumpseat.tools.tool import ToolContext, ToolOutcome, failure
from jumpseat.tools.workspace_files import LARGEST_READ


class Editable(Struct, frozen=True):
    """The text of a file, with surrogates for undecodable bytes, and the mode of the file."""

    text: str
    mode: int


async def read_editable(ctx: ToolContext, path: str) -> Editable | ToolOutcome:
    """Read the file at ``path``, as the model wrote it; return a failure if it cannot be edited as text.

    A large file takes long, hence the thread.
    """
    try:
        if ctx.virtual_files is not None and ctx.is_virtual(path):
            content = await ctx.virtual_files.load(path)
            if not isinstance(content, bytes):
                return failure(f"Path {path} is not a file. Give the path of a text file.")
            return await anyio.to_thread.run_sync(_text, content, path, 0)
        # Opened each time, because the file may have changed while permission was asked.
        await ctx.files.open(ctx.resolve(path))
        return await anyio.to_thread.run_sync(_read, ctx, path)
    except StoreError as error:
        return failure(str(error))
    except (OSError, ValueError) as error:
        return problem(path, error)


async def changed_since(ctx: ToolContext, path: str, text: str | None) -> ToolOutcome | None:
    """Return a failure unless a file still has the text that a question has shown; ``None``: there was no file."""
    if text is None:
        try:
            if ctx.virtual_files is not None and ctx.is_virtual(path):
                exists = await ctx.virtual_files.load(path) is not None
            else:
                exists = await anyio.to_thread.run_sync(os.path.lexists, ctx.resolve(path))
        except StoreError as error:
            return failure(str(error))
        return (
            failure(f"Path {path} already exists: it was created after permission was asked.") if exists else None
        )
    found = await read_editable(ctx, path)
    if isinstance(found, Editable) and found.text == text:
        return None
    reason = "" if isinstance(found, Editable) else f"{found.text} "
    return failure(f"{reason}File {path} has changed since permission was asked. View it before you change it.")


def does_not_fit(path: str) -> str:
    """Return the reason of a refused edit for a model that may not read the file."""
    return (
        f"The change does not fit {path} as it is: its old text has to be in exactly one place of the file, and the"
        " new one must differ from it. The nearest place is not shown, because it may not be known to you. View the"
        " file, then try again."
    )


def _read(ctx: ToolContext, path: str) -> Editable | ToolOutcome:
    """Read a file that is not virtual.

    Raises:
        OSError, ValueError: the file cannot be read.
    """
    full = ctx.resolve(path)
    status = ctx.files.place(full).stat()
    if not stat.S_ISREG(status.st_mode):
        return failure(f"Path {path} is not a file. Give the path of a text file.")
    if status.st_size > LARGEST_READ:
        return failure(f"File {path} is too large to edit ({status.st_size} bytes). Use sed in bash.")
    # The file is replaced by renaming, which would work on a read-only file, too.
    if not os.access(full, os.W_OK):
        return failure(f"File {path} is read-only.")
    return _text(ctx.files.read(full), path, status.st_mode)


def _text(data: bytes, path: str, mode: int) -> Editable | ToolOutcome:
    if is_binary(data):
        return failure(f"File {path} is binary and cannot be edited as text.")
    return Editable(data.decode("utf-8", "surrogateescape"), mode)
