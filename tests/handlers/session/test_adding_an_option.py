"""The recipe for a session option in CONTRIBUTING.md, applied to a copy of the server."""

from __future__ import annotations

from pathlib import Path

from tests.support.recipes import recipe_server
from tests.support.server import scripted


def test_the_recipe_adds_an_option_that_resumed_sessions_have_again_and_clients_change(tmp_path: Path) -> None:
    def told(language: str) -> dict[str, object]:
        return {"expect": {"system": f"Answer in {language}."}, "text": "done"}

    def prompted(session: dict[str, object]) -> bool:
        return "response" in server.call("session.sendAndWait", {**session, "prompt": "go"})

    with recipe_server(tmp_path) as server:
        # The script continues with the conversation.
        provider = scripted(told("French"), told("French"), told("Danish"))
        created = server.call("session.create", {"provider": provider, "answerLanguage": "French"})
        session = {"sessionId": created["sessionId"]}
        assert prompted(session)
        # The last client leaves: the session is loaded from the disk again.
        server.call("session.destroy", session)
        server.call("session.resume", {**session, "provider": provider})
        assert prompted(session)
        server.call("session.options.update", {**session, "answerLanguage": "Danish"})
        assert prompted(session)
