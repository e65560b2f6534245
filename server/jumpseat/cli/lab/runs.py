"""A run of the lab: each task with one agent, what came of it, and the table."""

from __future__ import annotations

import math
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from msgspec import Struct

from jumpseat.cli.lab.agents import AgentError, LabModel, run_task
from jumpseat.cli.lab.build_cache import FOLDER, BuildCache
from jumpseat.cli.lab.clumsy import ClumsyModel
from jumpseat.cli.lab.model_server import ModelServer, RealModel
from jumpseat.cli.lab.tasks import Task
from jumpseat.cli.lab.wires import MODEL

TASK_S: Final = 600.0
WINDOW: Final = 128_000


class Outcome(Struct, frozen=True):
    """The outcome of a task. ``skipped`` names the missing program; ``problems`` are the mistakes."""

    task: str
    kind: str
    seed: str
    problems: list[str]
    skipped: str | None = None
    rounds: int = 0
    tokens: int = 0
    cached: float = 0.0
    seconds: float = 0.0
    slips: list[str] = []

    @property
    def ok(self) -> bool:
        return not self.problems and self.skipped is None


class Plan(Struct, frozen=True):
    """The settings of a run: the agent's command, its protocol, the seeds of mistakes, or a real model."""

    command: Sequence[str]
    protocol: str
    seeds: Sequence[str] = ("1",)
    real: RealModel | None = None
    window: int = WINDOW
    limit_s: float = TASK_S


async def run_tasks(plan: Plan, tasks: Sequence[Task], report: Callable[[Outcome], None]) -> list[Outcome]:
    """Run tasks with each seed, one after another, and return what came of each."""
    outcomes: list[Outcome] = []
    server = ModelServer(plan.window, plan.real)
    with server.running(), tempfile.TemporaryDirectory(prefix="jumpseat-lab-", ignore_cleanup_errors=True) as name:
        cache = BuildCache(Path(name))
        await anyio.to_thread.run_sync(cache.warm, tasks)
        for seed in plan.seeds:
            for task in tasks:
                missing = task.missing_program
                outcome = (
                    Outcome(task.id, task.kind, seed, [], missing)
                    if missing
                    else await _run(plan, task, seed, server, cache)
                )
                outcomes.append(outcome)
                report(outcome)
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> dict[str, float | int]:
    """Return the figures of a row of the table."""
    run = [each for each in outcomes if each.skipped is None]
    sent = sum(each.tokens for each in run)
    succeeded = sum(each.ok for each in run)
    return {
        "succeeded": succeeded,
        "tasks": len(run),
        "rounds": round(statistics.fmean(each.rounds for each in run), 1) if run else 0,
        "tokens": round(sent / len(run)) if run else 0,
        "tokens_per_success": round(sent / succeeded) if succeeded else 0,
        "cached": round(sum(each.tokens * each.cached for each in run) / sent, 3) if sent else 0,
        "seconds": round(statistics.median(each.seconds for each in run), 1) if run else 0,
    }


def slips_of(outcomes: Sequence[Outcome]) -> Counter[tuple[str, bool]]:
    """Count the mistakes of the simulated model, by whether the task succeeded all the same."""
    return Counter((slip, each.ok) for each in outcomes for slip in set(each.slips))


async def _run(plan: Plan, task: Task, seed: str, server: ModelServer, cache: BuildCache) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="jumpseat-lab-"))
    try:
        home = folder / "home"
        home.mkdir()
        if task.language == "go":
            await anyio.to_thread.run_sync(cache.link, home)
        (folder / "work").mkdir()
        task.lay(folder / "work")
        simulated = ClumsyModel(task, seed)
        traffic = server.begin(simulated)
        began = time.monotonic()
        lab = LabModel(plan.real.model if plan.real else MODEL, server.url, plan.window)
        problems: list[str] = []
        answer = ""
        try:
            with anyio.fail_after(plan.limit_s):
                answer = await run_task(plan.protocol, plan.command, folder, lab, task.prompt)
        except TimeoutError:
            problems.append(f"no end within {plan.limit_s:g} s")
        except (AgentError, OSError) as error:
            problems.append(str(error))
        seconds = time.monotonic() - began
        variables = {"GOCACHE": str(home / FOLDER)}
        problems += await anyio.to_thread.run_sync(task.problems, folder / "work", answer, variables)
        return Outcome(
            task.id,
            task.kind,
            seed,
            problems,
            None,
            traffic.requests,
            traffic.tokens,
            traffic.repeated / traffic.characters if traffic.characters else math.nan,
            seconds,
            simulated.slips,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
