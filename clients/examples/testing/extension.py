"""The part of an extension that talks to the server: it has a tool, and asks for a release note."""

from __future__ import annotations

from jumpseat_client import Client, ProviderConfig, approve_all, tool


@tool
async def list_changes(since: str) -> list[str]:
    """List the changes since a version."""
    return {"1.4": ["Fix the total of empty carts"]}.get(since, [])


async def release_note(client: Client, provider: ProviderConfig, since: str) -> str:
    """Return a release note for the changes since a version."""
    session = await client.create_session(
        provider=provider,
        model="any",
        tools=[list_changes],
        available_tools=["list_changes"],
        on_permission=approve_all,
    )
    return await session.ask(f"Write a release note for the changes since {since}.")
