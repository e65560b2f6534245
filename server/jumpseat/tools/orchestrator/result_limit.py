"""The limit on the result of a tool: what is too large for a model goes to a file, and the model gets its path.

Source: the recorded conversations of the Copilot SDK's own test suite, which compare the text literally.
"""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable
from typing import Final

PREVIEW_CHARACTERS: Final = 500


def spill(text: str, max_bytes: int, save: Callable[[str, bytes], str]) -> str:
    """Return ``text`` if it fits into ``max_bytes``, else a note about the file that it was saved to.

    ``save`` writes a new file and returns its path, or raises ``OSError``: then the note says so, and still
    contains the preview.
    """
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    suffix = "".join(random.choices(string.ascii_lowercase + string.digits, k=6))  # noqa: S311 - a name, no secret
    name = f"{int(time.time() * 1000)}-copilot-tool-output-{suffix}.txt"
    try:
        saved = f"Saved to: {save(name, data)}"
    except OSError as error:
        saved = f"It could not be saved: {error.strerror or error}"
    return (
        f"Output too large to read at once ({len(data) / 1024:.1f} KB). {saved}\n"
        "Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range"
        " (for specific sections), or jq (for JSON) to examine portions of the output.\n\n"
        f"Preview (first {PREVIEW_CHARACTERS} chars):\n{text[:PREVIEW_CHARACTERS]}"
    )
