"""The clients of a session: what a further one costs, and what the others are told."""

from __future__ import annotations

import cProfile
from pstats import Stats

from jumpseat.agent.client import Attachment
from jumpseat.agent.session.clients import Clients
from jumpseat_protocol import events
from jumpseat_protocol.sessions import ClientCommand
from tests.support.sessions import RecordingClient


def calls_of_a_further_client(others: int) -> int:
    """Return the number of function calls with which a client joins a session and leaves it."""
    clients = Clients("s", lambda _: None, lambda _client, _payload: None, lambda: "one")
    for _ in range(others):
        clients.attach(Attachment(RecordingClient(), handles_permissions=True))
    further = Attachment(RecordingClient(), handles_permissions=True)
    # The first time imports modules.
    clients.attach(further)
    clients.detach(further.client)
    with cProfile.Profile() as profile:
        clients.attach(further)
        clients.detach(further.client)
    statistics = Stats(profile).get_stats_profile().func_profiles
    return sum(int(function.ncalls.partition("/")[0]) for function in statistics.values())


def test_a_client_that_offers_nothing_asks_nothing_about_the_others() -> None:
    assert calls_of_a_further_client(200) <= calls_of_a_further_client(20) + 10


def test_others_are_told_what_clients_offer_together() -> None:
    told: list[events.EventPayload] = []
    clients = Clients("s", told.append, lambda _client, _payload: None, lambda: "one")
    clients.attach(Attachment(RecordingClient()))
    second = RecordingClient()
    command = {"go": ClientCommand(name="go")}
    for attachment in (
        Attachment(second),
        Attachment(second, commands=command),
        Attachment(second, commands=command, handles_elicitation=True),
        Attachment(second),
    ):
        told.clear()
        clients.attach(attachment)
        shows = attachment.handles_elicitation
        assert clients.can_elicit() == shows
        kinds = {type(payload) for payload in told}
        if attachment.commands and not shows:
            assert kinds == {events.CommandsChanged}
        elif shows:
            assert kinds == {events.CapabilitiesChanged}
        elif kinds:
            assert kinds == {events.CommandsChanged, events.CapabilitiesChanged}
    assert told
    clients.attach(Attachment(second, commands=command))
    told.clear()
    clients.detach(second)
    assert [type(payload) for payload in told] == [events.CommandsChanged]
