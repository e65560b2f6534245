"""Derive the settings of the server's parts from the options and the configuration."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio.abc import TaskGroup

from jumpseat.agent.clock import SystemClock
from jumpseat.agent.permissions.approvals import ApprovalStore
from jumpseat.agent.permissions.judge import JUDGE_TIMEOUT_S, JudgeConfig
from jumpseat.agent.permissions.permissions import Policy
from jumpseat.agent.session.compactor import CompactionPolicy
from jumpseat.agent.session.session import Session
from jumpseat.config import AgentsConfig, BudgetConfig, CompactionConfig, Config, RetryConfig, SandboxSection
from jumpseat.errors import ConfigError
from jumpseat.options import TcpOptions
from jumpseat.parsing.validation import in_file
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.sessions.access import Gate
from jumpseat.store.project.project_rules import PermissionRules, location, read_rules
from jumpseat.store.user.trusted_folders import TrustedFolders
from jumpseat_protocol.events import SessionWarning

if TYPE_CHECKING:
    from jumpseat.agent.session.budget import DaySum, SessionBudget
    from jumpseat.store.user.documents import Document

log = logging.getLogger(__name__)


def open_gate(options: TcpOptions | None, home: Path) -> tuple[Gate, str | None]:
    """Return the gate, and the new connection token if none was configured."""
    pages = None
    if options is not None and options.web_port is not None:
        from jumpseat.store.user.page_access import PageAccess

        pages = PageAccess(home)
    if options is None or options.same_user:
        return Gate(pages=pages), None
    from jumpseat.store.user.connection_tokens import ConnectionTokenFile

    known = ConnectionTokenFile(home) if options.named_tokens else None
    if options.token is not None or (known is not None and known.all()):
        return Gate(options.token, known, pages), None
    made = secrets.token_urlsafe(32)
    return Gate(made, known, pages), made


def plugin_folders(given: Sequence[str]) -> list[Path]:
    """Return the plugin folders in the arguments as absolute paths.

    Raises:
        ConfigError: a folder does not exist.
    """
    folders = [Path(path).expanduser().absolute() for path in given]
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"--plugin-dir: {str(folder)!r} is not a directory")
    return folders


def permission_policy(config: Config, home: Path, trust: TrustedFolders, approvals: ApprovalStore) -> Policy:
    """Return the permission policy of the user's configuration.

    Raises:
        ConfigError: a rule is invalid.
    """
    try:
        user = read_rules(dict(config.permissions))
    except ValueError as error:
        raise ConfigError(in_file(home / "config.toml", [f"permissions.{error}"])) from None
    judge = config.permissions.judge
    return Policy(
        rules=PermissionRules(user, trust),
        location_key=location,
        approval_store=approvals,
        guarded=(home,),
        is_trusted=trust.is_trusted,
        judge=JudgeConfig(judge.model, judge.timeout_s or JUDGE_TIMEOUT_S) if judge else None,
    )


def sandbox_settings(config: SandboxSection) -> SandboxSettings:
    """Return the settings of the sandboxes of sessions that do not choose any."""
    return SandboxSettings(
        mode=config.mode,
        mcp=config.mcp,
        network=config.network,
        hosts=tuple(config.hosts),
        write=tuple(config.write),
        read_only=tuple(config.read_only),
        hide=tuple(config.hide),
        show=tuple(config.show),
        shared_caches=config.caches == "shared",
        mechanisms=None if config.mechanisms is None else tuple(config.mechanisms),
    )


def given_settings(section: RetryConfig | AgentsConfig) -> dict[str, Any]:
    """Return the settings that have a value."""
    return {name: value for name, value in section if value is not None}


def compaction_policy(config: CompactionConfig) -> CompactionPolicy:
    """Return the compaction policy of sessions without such options."""
    given: dict[str, Any] = {
        "enabled": config.enabled,
        "clears_results": config.clear_results,
        "background": config.background_threshold,
        "exhaustion": config.exhaustion_threshold,
    }
    return CompactionPolicy(**{name: value for name, value in given.items() if value is not None})


class ConfiguredBudgets:
    """The budgets of the configuration. ``shared`` is the day's usage in a cluster, instead of a file in ``home``.

    What a budget needs is imported with the first one: few sessions have any.
    """

    def __init__(self, config: BudgetConfig, home: Path, shared: Document | None, tasks: TaskGroup) -> None:
        self._config = config
        self._home = home
        self._shared = shared
        self._tasks = tasks
        self._day_sum: DaySum | None = None

    def of_session(self, session: Session) -> SessionBudget | None:
        """Return a new budget for a session; ``None`` if it has no limits."""
        config = self._config
        if session.settings.options.budget is None and not config.model_fields_set:
            return None
        from jumpseat.agent.session.budget import SessionBudget, budgets_of

        default = budgets_of(config.session, config.prompt, config.day)
        return SessionBudget(
            lambda: default.overridden_by(session.settings.options.budget),
            self._sum_of_day(),
            session.metrics.total().values(),
            lambda text: session.emit(SessionWarning(warning_type="budget", message=text)),
        )

    def of_completions(self) -> SessionBudget | None:
        """Return the budget of model calls outside of sessions: only that of the day concerns them."""
        if not self._config.day.model_fields_set:
            return None
        from jumpseat.agent.session.budget import SessionBudget, budgets_of

        budgets = budgets_of(None, None, self._config.day)
        return SessionBudget(lambda: budgets, self._sum_of_day(), (), log.warning)

    def _sum_of_day(self) -> DaySum:
        if self._day_sum is None:
            from jumpseat.agent.session.budget import DaySum
            from jumpseat.store.user.day_usage import DayUsage, file_in

            document = file_in(self._home) if self._shared is None else self._shared
            self._day_sum = DaySum(DayUsage(document, SystemClock()), self._tasks)
        return self._day_sum
