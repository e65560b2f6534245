"""``view``: show a file with line numbers, the entries of a directory, or an image to models with vision."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

import anyio.to_thread
from pydantic import Field

from jumpseat.agent.blocks import ImageBlock
from jumpseat.agent.conversation.pictures import MAX_IMAGE_BYTES, PictureError, check_picture, image_type
from jumpseat.agent.interfaces import VirtualFiles
from jumpseat.errors import StoreError
from jumpseat.tools.files import SNIFF_BYTES, is_binary, problem, readable
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat_protocol.limits import PathText
from jumpseat_protocol.permissions import ReadPermission

SHOWN_BYTES: Final = 8 * 1024 * 1024
"""Limit of the text that one call returns, whatever the size of the file."""

OTHER_BUFFER: Final = (
    "\n[This is the file on the disk, which a command has changed. The user's editor has another text of it,"
    " perhaps with unsaved changes.]"
)

SHOWN_ENTRIES: Final = 10_000
"""Limit of the entries of a directory that one call returns."""


class ViewArgs(ToolArgs):
    path: PathText
    view_range: list[int] | None = Field(None, description="[first, last] line from 1; last -1: to the end")


async def run_view(ctx: ToolContext, args: ViewArgs) -> ToolOutcome:
    if ctx.virtual_files is not None and ctx.is_virtual(args.path):
        return await _view_virtual(ctx.virtual_files, args)
    path = ctx.resolve(args.path)
    await ctx.files.open(path)
    # A disk may be slow, and a folder may have a million entries.
    return await anyio.to_thread.run_sync(_view, ctx, args, path, abandon_on_cancel=True)


async def _view_virtual(files: VirtualFiles, args: ViewArgs) -> ToolOutcome:
    try:
        found = await files.load(args.path)
    except StoreError as error:
        return failure(str(error))
    if found is None:
        return failure(f"Path {args.path} does not exist.")
    if isinstance(found, list):
        return ToolOutcome("\n".join(found[:SHOWN_ENTRIES]) or "(empty directory)")
    return _view_lines(args, BytesIO(found))


def _permission(ctx: ToolContext, args: ViewArgs) -> ReadPermission | None:
    # The client itself has the files that are not on the disk.
    if ctx.is_virtual(args.path):
        return None
    return ReadPermission(intention=_intention(args), path=str(ctx.resolve(args.path)))


def _view(ctx: ToolContext, args: ViewArgs, path: Path) -> ToolOutcome:
    try:
        with _closing(ctx.files.open_for_reading(path)) as fd:
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                return ToolOutcome("\n".join(_entries(fd)) or "(empty directory)")
            if not stat.S_ISREG(status.st_mode):
                return failure(f"Path {args.path} is neither a file nor a directory.")
            if (unsaved := ctx.files.unsaved(path)) is not None:
                return _view_lines(args, BytesIO(unsaved))
            outcome = _view_file(args, os.dup(fd))
            if ctx.files.in_conflict(path):
                outcome.text += OTHER_BUFFER
            return outcome
    except (OSError, ValueError) as error:
        return problem(args.path, error)


@contextmanager
def _closing(fd: int) -> Generator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


def _view_file(args: ViewArgs, fd: int) -> ToolOutcome:
    """Show an open file, and close it."""
    with open(fd, "rb") as file:
        head = file.read(SNIFF_BYTES)
        file.seek(0)
        if image_type(head):
            return _view_image(args.path, file)
        if is_binary(head):
            return failure(f"File {args.path} is binary and cannot be shown as text. Use bash to inspect it.")
        return _view_lines(args, file)


def _view_image(shown_path: str, file: BinaryIO) -> ToolOutcome:
    size = os.fstat(file.fileno()).st_size
    if size > MAX_IMAGE_BYTES:
        return failure(
            f"Image {shown_path} is too large ({size} bytes, at most {MAX_IMAGE_BYTES}). Make it smaller first."
        )
    content = file.read()
    try:
        mime_type = check_picture(content)
    except PictureError as problem:
        return failure(f"Image {shown_path} cannot be shown: {problem}.")
    data = base64.b64encode(content).decode("ascii")
    image = ImageBlock(data=data, mime_type=mime_type, label=f"Image file at path {shown_path}")
    return ToolOutcome("Viewed image file successfully.", images=[image])


def _view_lines(args: ViewArgs, file: BinaryIO) -> ToolOutcome:
    first, last = 1, -1
    if args.view_range is not None:
        if len(args.view_range) != 2:
            return failure(f"view_range must be two line numbers, [first, last], not {args.view_range}.")
        first, last = args.view_range
        if first < 1 or (last < first and last != -1):
            return failure(
                f"view_range {args.view_range} is not valid: 1 <= first <= last, or last -1 for the end."
            )
    shown: list[str] = []
    size = number = 0
    ended_with_newline = True
    # Bounded, because a file may be one endless line.
    while line := file.readline(SHOWN_BYTES):
        number += 1
        ended_with_newline = line.endswith(b"\n")
        if number >= first:
            size += len(line)
            shown.append(_number_line(number, line))
            if number == last:
                break
            if size >= SHOWN_BYTES:
                shown.append(f"[Stopped after {size} bytes. Continue with view_range [{number + 1}, -1].]")
                return ToolOutcome("\n".join(shown))
    else:
        # A final newline begins a last, empty line; an empty file consists of one empty line.
        if ended_with_newline:
            number += 1
            if number >= first:
                shown.append(_number_line(number, b""))
    if not shown:
        return failure(f"view_range {args.view_range} is beyond the end of {args.path}, which has {number} lines.")
    return ToolOutcome("\n".join(shown))


def _number_line(number: int, line: bytes) -> str:
    text = line.rstrip(b"\r\n").decode("utf-8", "replace")
    return f"{number}. {text.removeprefix(chr(0xFEFF)) if number == 1 else text}"


def _entries(fd: int) -> list[str]:
    """Return the names in an open directory, with a slash at the end of directories."""
    with os.scandir(fd) as entries:
        names = sorted(_shown_name(entry) for entry in islice(entries, SHOWN_ENTRIES + 1))
    if len(names) > SHOWN_ENTRIES:
        names[SHOWN_ENTRIES:] = [f"[Stopped after {SHOWN_ENTRIES} entries. Use glob or bash to find others.]"]
    return names


def _shown_name(entry: os.DirEntry[str]) -> str:
    try:
        is_folder = entry.is_dir()
    except OSError:
        # A link that leads to itself, or into a folder that may not be searched.
        is_folder = False
    return readable(entry.name) + ("/" if is_folder else "")


def _intention(args: ViewArgs) -> str:
    return f"Read {args.path}"


TOOL: Final = BuiltinTool(
    name="view",
    description="Read a text file with line numbers, see an image, or list a directory.",
    args=ViewArgs,
    run=run_view,
    intention=_intention,
    permission=_permission,
    position=60,
    read_only=True,
)
