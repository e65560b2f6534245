"""The accounts of the process: the cache of accounts, and the decoding of quotas."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from jumpseat.adapters.models.copilot_accounts import MAX_ACCOUNTS, CopilotAccounts
from jumpseat.adapters.models.copilot_login import TokenLogin
from jumpseat.adapters.transport.http import HttpTransport
from jumpseat_protocol.accounts import AccountQuotaSnapshot
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, SeenRequest, json_reply

pytestmark = pytest.mark.anyio


async def test_the_number_of_cached_accounts_is_limited() -> None:
    def answer(request: SeenRequest) -> Any:
        return json_reply({"login": request.headers["authorization"]})

    async with ModelServer(answer=answer, lists=True) as server, HttpTransport() as transport:
        accounts = CopilotAccounts({"COPILOT_DEBUG_GITHUB_API_URL": server.url}, transport, "app/1")
        with anyio.fail_after(WAIT_S):
            for number in [*range(MAX_ACCOUNTS + 1), MAX_ACCOUNTS, 0]:
                assert (await accounts.user(TokenLogin(f"t{number}")))["login"] == f"Bearer t{number}"

    # Each account is requested once, the first one twice: the last one replaced it in the cache.
    tokens = [request.headers["authorization"] for request in server.requests]
    assert tokens == [f"Bearer t{number}" for number in [*range(MAX_ACCOUNTS + 1), 0]]


async def test_the_same_token_on_two_sites_is_two_accounts() -> None:
    async with HttpTransport() as transport:
        accounts = CopilotAccounts({}, transport, "app/1")
        here, there = TokenLogin("t"), TokenLogin("t", host="https://octo.ghe.com")

        assert await accounts.account(here) is await accounts.account(here)
        assert await accounts.account(here) is not await accounts.account(there)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({}, {}),
        ({"quota_snapshots": None}, {}),
        ({"quota_snapshots": {"chat": None, "odd": "x"}}, {}),
        (
            {
                "quota_reset_date": "2026-12-01",
                "quota_snapshots": {
                    "premium_interactions": {
                        "entitlement": 300,
                        "quota_remaining": 291.67,
                        "remaining": 291,
                        "percent_remaining": 97.2,
                        "unlimited": False,
                        "overage_count": 0,
                        "overage_permitted": False,
                        "timestamp_utc": "2026-11-20T00:00:00Z",
                    }
                },
            },
            {
                "premium_interactions": AccountQuotaSnapshot(
                    is_unlimited_entitlement=False,
                    entitlement_requests=300,
                    used_requests=8,
                    remaining_percentage=97.2,
                    usage_allowed_with_exhausted_quota=False,
                    overage=0.0,
                    overage_allowed_with_exhausted_quota=False,
                    reset_date="2026-12-01",
                )
            },
        ),
        (
            {"quota_snapshots": {"chat": {"unlimited": True, "entitlement": 0, "percent_remaining": 100.0}}},
            {
                "chat": AccountQuotaSnapshot(
                    is_unlimited_entitlement=True,
                    entitlement_requests=-1,
                    used_requests=0,
                    remaining_percentage=100.0,
                    usage_allowed_with_exhausted_quota=False,
                    overage=0.0,
                    overage_allowed_with_exhausted_quota=False,
                )
            },
        ),
        (
            {"quota_snapshots": {"chat": {"entitlement": "many", "remaining": 5}}},
            {
                "chat": AccountQuotaSnapshot(
                    is_unlimited_entitlement=False,
                    entitlement_requests=0,
                    used_requests=0,
                    remaining_percentage=100.0,
                    usage_allowed_with_exhausted_quota=False,
                    overage=0.0,
                    overage_allowed_with_exhausted_quota=False,
                )
            },
        ),
    ],
)
async def test_the_valid_part_of_a_quota_is_decoded(user: dict[str, Any], expected: dict[str, Any]) -> None:
    async with ModelServer(json_reply(user)) as server, HttpTransport() as transport:
        accounts = CopilotAccounts({"COPILOT_DEBUG_GITHUB_API_URL": server.url}, transport, "app/1")
        with anyio.fail_after(WAIT_S):
            assert await accounts.quota(TokenLogin("t")) == expected
