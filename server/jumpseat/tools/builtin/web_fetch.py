"""``web_fetch``: a page of the web, as text a model can read, a part at a time."""

from __future__ import annotations

import base64
import re
from functools import partial
from typing import Annotated, Final

import anyio.to_thread
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from jumpseat.agent.blocks import ImageBlock
from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat.tools.web import Page, Web, WebError
from jumpseat_protocol.permissions import UrlPermission

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
SHOWN: Final = 5000
MOST_SHOWN: Final = 20_000


_ADDRESS: Final = re.compile(r"https?://[^\s\\@/?#]+([/?#]\S*)?", re.IGNORECASE)


def _plain(url: str) -> str:
    """``url`` as one that leads to the same host whoever reads it, because a host is what people give leave for."""
    url = url.strip()
    if not _ADDRESS.fullmatch(url):
        raise PydanticCustomError("address", "is not an http or https URL without white space or user name")
    return url


class WebFetchArgs(ToolArgs):
    url: Annotated[str, AfterValidator(_plain)]
    max_length: int = Field(SHOWN, ge=1, description="Characters to return, at most 20000")
    start_index: int = Field(0, ge=0, description="Go on from this character")
    raw: bool = Field(False, description="The source instead of Markdown")


def web_fetch(web: Web) -> BuiltinTool[WebFetchArgs]:
    """The tool, over what fetches pages."""
    return BuiltinTool(
        name="web_fetch",
        description="Fetch a web page as Markdown; also JSON, text and images.",
        args=WebFetchArgs,
        run=partial(_run, web),
        intention=_intention,
        permission=lambda _ctx, args: UrlPermission(intention=_intention(args), url=args.url),
    )


def _intention(args: WebFetchArgs) -> str:
    return f"Fetch {args.url}"


async def _run(web: Web, ctx: ToolContext, args: WebFetchArgs) -> ToolOutcome:
    url = args.url
    try:
        page = await web.fetcher().fetch(url, raw=args.raw)
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
    """The characters that were asked for, and how to get the rest."""
    if not text.strip():
        return ToolOutcome(f"{url} has no text. With raw: true its source is shown.")
    start, end = args.start_index, args.start_index + min(args.max_length, MOST_SHOWN)
    if start >= len(text):
        return failure(f"start_index {start} is beyond the end of {url}, which has {len(text)} characters.")
    shown = f"Contents of {url}:\n{text[start:end]}"
    if end < len(text):
        shown += f"\n\n[Characters {start} to {end} of {len(text)}. Go on with start_index: {end}.]"
    return ToolOutcome(shown)
