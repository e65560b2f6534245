"""The budgets of a session: limits, in dollars and in tokens, on the model calls that it makes.

A budget is one of the session, of one prompt of the user with everything that the prompt starts, or of a day, which
all sessions of the user share. All model calls count: also those of sub-agents, summaries, side questions, judges
and MCP servers. From 80 % on, the user is warned; a model is not called once a budget is used up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol, TypeAlias

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct

from jumpseat.agent.conversation import tokens
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Usage
from jumpseat.agent.observation import ModelCall
from jumpseat.agent.session.metrics import ModelUsage
from jumpseat.errors import BudgetError, StoreError
from jumpseat_protocol.sessions import BudgetLimitConfig, BudgetOptions

log = logging.getLogger(__name__)

Scope: TypeAlias = Literal["prompt", "session", "day"]

WARNED_FROM: Final = 0.8
"""The share of a budget from which on the user is warned."""

_WAYS_ON: Final = {
    "prompt": "send another prompt, or raise budget.prompt.{member} (in config.toml: prompt.{key} of [budget])",
    "session": (
        "raise budget.session.{member} (on the command line: --{flag}; in config.toml: session.{key} of [budget])"
        " to go on, or begin another session"
    ),
    "day": "raise day.{key} of [budget] in config.toml to go on before tomorrow",
}
"""What to do about a budget, which has the same name at each door, in the spelling of that door."""


_KEYS: Final = {"maxCost": "max_cost", "maxTokens": "max_tokens"}


class Spent(Struct, frozen=True):
    """The tokens of model calls, of input and output, and their cost in US dollars as far as it is known."""

    tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.dollars + other.dollars)


NOTHING: Final = Spent()


class Limit(Struct, frozen=True):
    """The limit of one budget, in US dollars and in tokens; ``None`` is no limit."""

    max_cost: float | None = None
    max_tokens: int | None = None

    def overridden_by(self, config: BudgetLimitConfig | None) -> Limit:
        """Return the limit with the values that a session has of its own."""
        if config is None:
            return self
        return Limit(
            self.max_cost if config.max_cost is None else config.max_cost,
            self.max_tokens if config.max_tokens is None else config.max_tokens,
        )

    def and_also(self, config: BudgetLimitConfig | None) -> Limit:
        """Return the lower limit of both."""
        if config is None:
            return self
        costs = [cost for cost in (self.max_cost, config.max_cost) if cost is not None]
        counts = [count for count in (self.max_tokens, config.max_tokens) if count is not None]
        return Limit(min(costs, default=None), min(counts, default=None))

    def share(self, spent: Spent) -> tuple[float, str, str]:
        """Return the share that is used up, the same in words, and the member of the limit that is meant."""
        cost = (0.0, "", "") if self.max_cost is None else _share_of_cost(spent.dollars, self.max_cost)
        if self.max_tokens is None:
            return cost
        words = f"{spent.tokens:,} of {self.max_tokens:,} tokens"
        return max(cost, (spent.tokens / self.max_tokens, words, "maxTokens"))


NO_LIMIT: Final = Limit()


class Budgets(Struct, frozen=True):
    """The limits of all budgets."""

    session: Limit = NO_LIMIT
    prompt: Limit = NO_LIMIT
    day: Limit = NO_LIMIT

    def overridden_by(self, options: BudgetOptions | None) -> Budgets:
        """Return the budgets with those of a session. That of the day can only become lower: it is not its own."""
        if options is None:
            return self
        return Budgets(
            self.session.overridden_by(options.session),
            self.prompt.overridden_by(options.prompt),
            self.day.and_also(options.day),
        )

    @property
    def limits_cost(self) -> bool:
        """Return whether a budget is in dollars."""
        return any(limit.max_cost is not None for limit in (self.session, self.prompt, self.day))


NO_BUDGETS: Final = Budgets()


class LimitSection(Protocol):
    """A limit in the configuration file."""

    @property
    def max_cost(self) -> float | None: ...

    @property
    def max_tokens(self) -> int | None: ...


def budgets_of(session: LimitSection | None, prompt: LimitSection | None, day: LimitSection | None) -> Budgets:
    """Return the budgets of the configuration file."""
    limits = (
        NO_LIMIT if limit is None else Limit(limit.max_cost, limit.max_tokens) for limit in (session, prompt, day)
    )
    return Budgets(*limits)


class DayLedger(Protocol):
    """The stored sum of the current day, which several processes share."""

    async def add(self, spent: Spent) -> Spent:
        """Add to the sum of the day and return it.

        Raises:
            StoreError: the sum cannot be read or stored.
        """
        ...


class DaySum:
    """The sum of the day, to which the process adds its model calls."""

    def __init__(self, ledger: DayLedger, tasks: TaskGroup) -> None:
        self._ledger = ledger
        self._tasks = tasks
        self._unsaved = NOTHING
        self._saving = anyio.Lock()

    async def get(self) -> Spent:
        """Return the sum, that of other processes included.

        Raises:
            StoreError: it cannot be read or stored.
        """
        async with self._saving:
            taken, self._unsaved = self._unsaved, NOTHING
            try:
                return await self._ledger.add(taken)
            except BaseException:
                self._unsaved += taken
                raise

    def count(self, spent: Spent) -> None:
        """Add to the sum, and store it soon."""
        self._unsaved += spent
        self._tasks.start_soon(self._save)

    async def _save(self) -> None:
        # Also while the process ends.
        with anyio.CancelScope(shield=True):
            try:
                await self.get()
            except StoreError as error:
                log.warning("cannot store the usage of the day yet: %s", error)


class SessionBudget:
    """The budgets of one session with its sub-agents, and what is used of them.

    ``budgets`` returns the current limits, ``used`` is the usage of the session so far, and ``warn`` shows a text
    to the user. The sum of the ``day`` has only calls under a limit of the day.
    """

    def __init__(
        self,
        budgets: Callable[[], Budgets],
        day: DaySum,
        used: Iterable[ModelUsage],
        warn: Callable[[str], object],
    ) -> None:
        self._budgets = budgets
        self._day = day
        self._warn = warn
        self._session = sum((_spent_on(model) for model in used), NOTHING)
        self._prompt = NOTHING
        # The limits that the user was warned about, by budget.
        self._warned: dict[Scope, Limit] = {}
        # The models whose answers came without a cost.
        self._unpriced = set[str]()

    def begin_prompt(self) -> None:
        """Begin the budget of a prompt of the user."""
        self._prompt = NOTHING
        self._warned.pop("prompt", None)

    async def admit(self, resolved: ResolvedModel) -> None:
        """Check that the budgets allow another call of a model.

        Raises:
            BudgetError: a budget is used up, or one in dollars cannot be kept because the price is unknown.
            StoreError: the sum of the day cannot be read.
        """
        budgets = self._budgets()
        if budgets == NO_BUDGETS:
            return
        for scope, limit, spent in await self._state():
            share, words, member = limit.share(spent)
            if share >= 1:
                key = _KEYS[member]
                way = _WAYS_ON[scope].format(member=member, key=key, flag=key.replace("_", "-"))
                raise BudgetError(f"the budget of the {scope} is used up, {words}: {way}")
            self._warn_of(scope, limit, spent)
        name = resolved.wire_name
        can = resolved.model.capabilities(name)
        if (
            budgets.limits_cost
            and resolved.known.price is None
            and (not can.reports_cost or name in self._unpriced)
        ):
            raise BudgetError(
                f"the price of {resolved.info.id!r} is unknown, so no budget in dollars can be kept: set the price"
                " of the model in config.toml, or limit maxTokens instead of maxCost"
            )

    async def report(self) -> None:
        """Warn the user about budgets that are almost used up, once about each."""
        try:
            state = await self._state()
        except StoreError as error:
            log.warning("the usage of the day is unknown: %s", error)
            return
        for scope, limit, spent in state:
            self._warn_of(scope, limit, spent)

    async def _state(self) -> list[tuple[Scope, Limit, Spent]]:
        budgets = self._budgets()
        if budgets == NO_BUDGETS:
            return []
        state: list[tuple[Scope, Limit, Spent]] = [
            ("prompt", budgets.prompt, self._prompt),
            ("session", budgets.session, self._session),
        ]
        if budgets.day != NO_LIMIT:
            state.append(("day", budgets.day, await self._day.get()))
        return state

    def _warn_of(self, scope: Scope, limit: Limit, spent: Spent) -> None:
        share, words, _ = limit.share(spent)
        if share < WARNED_FROM:
            # Another day has begun.
            self._warned.pop(scope, None)
        elif share < 1 and self._warned.get(scope) != limit:
            # Beyond the limit, the error of the next call says all there is to say.
            self._warned[scope] = limit
            self._warn(f"{int(100 * share)} % of the budget of the {scope} is used up: {words}.")

    def count(self, call: ModelCall) -> None:
        """Count a model call, also for the day."""
        if (spent := spent_by(call)) is None:
            return
        self._session += spent
        self._prompt += spent
        if call.resolved.cost_of(_usage_of(call)) is None:
            self._unpriced.add(call.resolved.wire_name)
        if self._budgets().day != NO_LIMIT:
            self._day.count(spent)


def _spent_on(model: ModelUsage) -> Spent:
    return Spent(model.input_tokens + model.output_tokens, model.dollars or 0.0)


def spent_by(call: ModelCall) -> Spent | None:
    """Return what a call has used; ``None`` for one that failed before its answer began.

    Tokens are estimated where the provider does not count them.
    """
    if call.completed is None and call.first_ms is None:
        return None
    usage = _usage_of(call)
    return Spent(usage.input_tokens + usage.output_tokens, call.resolved.cost_of(usage) or 0.0)


def _usage_of(call: ModelCall) -> Usage:
    answer = call.completed
    usage = answer.usage if answer is not None else None
    if usage is not None and (usage.input_tokens or usage.cost is not None or usage.nano_aiu):
        return usage
    return Usage(
        input_tokens=tokens.of_request(call.request).total,
        output_tokens=tokens.of_answer(answer.message) if answer is not None else 0,
    )


def _share_of_cost(dollars: float, most: float) -> tuple[float, str, str]:
    return dollars / most, f"{_dollars(dollars)} of {_dollars(most)}", "maxCost"


def _dollars(amount: float) -> str:
    """Format an amount, with more digits if it is small."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"
