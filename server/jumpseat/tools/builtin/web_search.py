"""``web_search``: query a search service. Offered only if the operator has configured one."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from jumpseat.tools.tool import BuiltinTool, ToolArgs, ToolContext, ToolOutcome, failure
from jumpseat.tools.web import Searcher, WebError
from jumpseat_protocol.permissions import UrlPermission

LONGEST_HIT: Final = 2000
"""Characters shown of one result; the model can fetch the page itself."""


class WebSearchArgs(ToolArgs):
    query: str = Field(min_length=1)
    domains: list[str] = Field(default_factory=list, description="Search only these sites")


def _intention(args: WebSearchArgs) -> str:
    where = f" on {', '.join(args.domains)}" if args.domains else ""
    return f"Search the web{where} for: {args.query}"


async def run_web_search(ctx: ToolContext, args: WebSearchArgs) -> ToolOutcome:
    try:
        hits = await _searcher(ctx).search(args.query, args.domains)
    except WebError as error:
        return failure(str(error))
    if not hits:
        return ToolOutcome("Nothing was found. Try other words.")
    return ToolOutcome("\n\n".join(f"{hit.title}\n{hit.url}\n{hit.text[:LONGEST_HIT].strip()}" for hit in hits))


def _searcher(ctx: ToolContext) -> Searcher:
    assert ctx.web is not None, "the tool is offered only where there is a web"
    return ctx.web.searcher()


TOOL: Final = BuiltinTool(
    name="web_search",
    description="Search the web; returns excerpts with their URLs.",
    args=WebSearchArgs,
    run=run_web_search,
    intention=_intention,
    # A query can reveal something, too: permission is asked for the address that it is sent to.
    permission=lambda ctx, args: UrlPermission(intention=_intention(args), url=_searcher(ctx).url),
    needs="web_search",
    position=130,
    read_only=True,
)
