"""``web_fetch``: fetch a web page and return a part of it as text."""

from __future__ import annotations

import base64
import re
from typing import Annotated, Final

import anyio.to_thread
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from jumpseat.agent.blocks import ImageBlock
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat.tools.web import Page, WebError
from jumpseat_protocol.permissions import UrlPermission

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
SHOWN: Final = 5000
MOST_SHOWN: Final = 20_000

_ADDRESS: Final = re.compile(r"https?://[^\s\\@/?#]+([/?#]\S*)?", re.IGNORECASE)


def _unambiguous(url: str) -> str:
    """Accept only URLs in which every parser finds the same host, because permission is given for a host."""
    url = url.strip()
    if not _ADDRESS.fullmatch(url):
        raise PydanticCustomError("address", "expected an http or https URL without white space or user name")
    return url


class WebFetchArgs(ToolArgs):
    url: Annotated[str, AfterValidator(_unambiguous)]
    max_length: int = Field(SHOWN, ge=1, description="Characters to return, at most 20000")
    start_index: int = Field(0, ge=0, description="Continue from this character")
    raw: bool = Field(False, description="The source instead of Markdown")


def _intention(args: WebFetchArgs) -> str:
    return f"Fetch {args.url}"


async def run_web_fetch(ctx: ToolContext, args: WebFetchArgs) -> ToolOutcome:
    assert ctx.web is not None, "the tool is offered only where there is a web"
    url = args.url
    try:
        page = await ctx.web.fetcher().fetch(url, raw=args.raw)
    except WebError as error:
        return failure(str(error))
    if page.redirected_to is not None:
        return ToolOutcome(f"{url} redirects to another site. To follow it, fetch {page.redirected_to}")
    if page.picture is not None:
        data = base64.b64encode(page.picture).decode("ascii")
        image = ImageBlock(data=data, mime_type=page.media_type, label=f"Image at {page.url}")
        return ToolOutcome(f"Fetched the image {page.url}", images=[image])
    text = page.text
    if page.media_type in HTML and not args.raw:
        text = await anyio.to_thread.run_sync(_readable, page, abandon_on_cancel=True)
    return _part(page.url, text, args)


def _readable(page: Page) -> str:
    from jumpseat.tools.html_text import html_to_markdown

    return html_to_markdown(page.text, page.url)


def _part(url: str, text: str, args: WebFetchArgs) -> ToolOutcome:
    """Return the requested range of ``text``, with a note on how to get the rest."""
    if not text.strip():
        return ToolOutcome(f"{url} has no text. Set raw: true to see its source.")
    start, end = args.start_index, args.start_index + min(args.max_length, MOST_SHOWN)
    if start >= len(text):
        return failure(f"start_index {start} is beyond the end of {url}, which has {len(text)} characters.")
    shown = f"Contents of {url}:\n{text[start:end]}"
    if end < len(text):
        shown += f"\n\n[Characters {start} to {end} of {len(text)}. Continue with start_index: {end}.]"
    return ToolOutcome(shown)


TOOL: Final = BuiltinTool(
    name="web_fetch",
    description="Fetch a web page as Markdown; also JSON, text and images.",
    args=WebFetchArgs,
    run=run_web_fetch,
    intention=_intention,
    permission=lambda _ctx, args: UrlPermission(intention=_intention(args), url=args.url),
    needs="web",
    position=120,
    read_only=True,
)
