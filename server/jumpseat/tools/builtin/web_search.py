"""``web_search``: what a search service finds. There only where one is configured."""

from __future__ import annotations

from functools import partial
from typing import Final

from pydantic import Field

from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat.tools.web import Web, WebError
from jumpseat_protocol.permissions import UrlPermission

LONGEST_HIT: Final = 2000
"""Characters of one result that are shown; the page itself can be fetched."""


class WebSearchArgs(ToolArgs):
    query: str = Field(min_length=1)
    domains: list[str] = Field(default_factory=list, description="Search these sites only")


def web_search(web: Web) -> BuiltinTool[WebSearchArgs]:
    """The tool, over what searches."""
    return BuiltinTool(
        name="web_search",
        description="Search the web; returns excerpts with their URLs.",
        args=WebSearchArgs,
        run=partial(_run, web),
        intention=_intention,
        # Queries tell things, too: they are asked about like any address that is called.
        permission=lambda _ctx, args: UrlPermission(intention=_intention(args), url=web.searcher().url),
    )


def _intention(args: WebSearchArgs) -> str:
    where = f" on {', '.join(args.domains)}" if args.domains else ""
    return f"Search the web{where} for: {args.query}"


async def _run(web: Web, ctx: ToolContext, args: WebSearchArgs) -> ToolOutcome:
    try:
        hits = await web.searcher().search(args.query, args.domains)
    except WebError as error:
        return failure(str(error))
    if not hits:
        return ToolOutcome("Nothing was found. Try other words.")
    return ToolOutcome("\n\n".join(f"{hit.title}\n{hit.url}\n{hit.text[:LONGEST_HIT].strip()}" for hit in hits))
