"""The clumsy model: a scripted policy that works on a task with the tools of any agent, and makes mistakes.

It knows the steps of the task, and nothing of the agent. Each step becomes a call of a tool that is offered.
Depending on the seed, some calls contain a mistake of :mod:`jumpseat.cli.lab.slips`. The model then reads the
result as small models do: it corrects itself if the result shows the right text, name or error; after a plain
refusal it looks again or repeats the mistake; and it believes every result that is not a refusal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.cli.lab.offers import Call, Offer, Tool
from jumpseat.cli.lab.slips import FOREIGN, LOOKS_AGAIN, break_code, drawn, malform, misremember, written
from jumpseat.cli.lab.tasks import Step, Task, malformed

MOST_REQUESTS: Final = 60
_ATTEMPTS: Final = 4
_REFUSED: Final = re.compile(
    r"not found|no match|no such|does ?n[o']t exist|unknown|invalid|unavailable|fail|error|denied|could not|unable"
    r"|must (?:be|have|match)|expected|did not",
    re.IGNORECASE,
)
_FAULT: Final = re.compile(
    r"syntax|parse|unclosed|unexpected|never closed|unbalanced|malformed|FAILED|\berror:"
    r"|expected [^\n]{0,40}[)\]}'\"]",
    re.IGNORECASE,
)
_SUCCEEDED: Final = re.compile(
    r"success|updated|applied|created|replaced|wrote|written|edited|modified", re.IGNORECASE
)


class Asked(Struct, frozen=True):
    """A request, of whichever wire: the texts of the user, the results since the last answer, and the tools."""

    prompts: Sequence[str]
    results: Sequence[str]
    tools: Sequence[Tool]


class Said(Struct, frozen=True):
    """An answer: text, or one call with its arguments as they are written."""

    text: str = ""
    name: str = ""
    arguments: str = ""


class ClumsyModel:
    """Works on one task. ``requests`` counts the requests of the task itself, without those for titles."""

    def __init__(self, task: Task, seed: str) -> None:
        self.requests = 0
        self.slips: list[str] = []
        self._task = task
        self._seed = f"{seed}/{task.id}"
        self._steps = list(task.steps)
        self._at = 0
        self._attempt = 0
        self._slip = ""
        self._sent: Call | None = None
        self._broken: Step | None = None
        self._mended = False
        self._cured: set[Step] = set()
        self._seen = ""
        self._answer: str | None = None

    def answer(self, asked: Asked) -> Said:
        """Answer a request."""
        if not asked.tools or not any(self._task.prompt in prompt for prompt in asked.prompts):
            return Said("Work on a small project")
        self.requests += 1
        if self.requests > MOST_REQUESTS:
            return Said("I give up.")
        offer = Offer(asked.tools)
        text = "\n".join(asked.results)
        self._seen += text
        if self._answer is not None:
            return Said(self._answer)
        if self._slip == "empty_answer":
            # The agent asks again, so the model goes on where it was.
            self._attempt, self._slip = self._attempt + 1, ""
        elif self._sent is not None:
            self._judge(text, offer)
        return self._next(offer)

    def _random(self, purpose: str = "") -> Random:
        """Return the same numbers for the same step of the same task, whatever the agent did before."""
        return Random(f"{self._seed}/{self._steps[self._at]}/{self._attempt}/{purpose}")  # noqa: S311

    def _next(self, offer: Offer) -> Said:
        step = self._steps[self._at]
        rng = self._random()
        if step.answer:
            return self._conclude(step, offer)
        call = self._call(step, offer)
        if call is None:
            self._answer = "I have no tool for that."
            return Said(self._answer)
        if self._attempt == 0 and step not in self._cured:
            self._slip = self._draw(step, rng)
            if self._slip:
                self.slips.append(self._slip)
        elif self._slip not in _REPEATED:
            self._slip = ""
        return self._say(step, call, offer, rng)

    def _draw(self, step: Step, rng: Random) -> str:
        of_edits = ("old_text", "broken_edit") if step.edit and self._broken is None else ()
        of_paths = ("wrong_path",) if step.view else ()
        return drawn(
            rng,
            *of_edits,
            *of_paths,
            *("foreign_name", "null_argument", "malformed_json", "written_call", "repeated_call", "empty_answer"),
        )

    def _say(self, step: Step, call: Call, offer: Offer, rng: Random) -> Said:
        """Say the call of a step, with the mistake that was drawn."""
        arguments = call.arguments
        self._sent = call
        match self._slip:
            case "old_text":
                # The same mistake again if it is repeated: its text is drawn by the step alone.
                wrong = misremember(step.old, Random(f"{self._seed}/{step.edit}/{step.old}"))  # noqa: S311
                call = offer.edit(step.edit, wrong, step.new) or call
            case "broken_edit":
                wrong_new = break_code(step.new)
                if wrong_new is not None and malformed(step.edit, wrong_new) != malformed(step.edit, step.new):
                    self._broken = replace(step, old=wrong_new)
                    call = offer.edit(step.edit, step.old, wrong_new) or call
            case "wrong_path":
                wrong_path = step.view.rpartition("/")[2] if "/" in step.view else f"src/{step.view}"
                call = offer.view(wrong_path) or call
            case "foreign_name":
                call = _foreign(step) or call
            case "null_argument":
                optional = [
                    name
                    for tool in offer.tools
                    if tool.name == call.name
                    for name in tool.properties
                    if name not in arguments
                ]
                call = replace(call, arguments={**arguments, **dict.fromkeys(optional[:2])})
            case "malformed_json":
                return Said("", call.name, malform(arguments, rng))
            case "written_call":
                return Said(written(call.name, arguments, rng))
            case "empty_answer":
                self._sent = None
                return Said()
            case _:
                pass
        return Said("", call.name, json.dumps(call.arguments, ensure_ascii=False))

    def _judge(self, text: str, offer: Offer) -> None:
        """Read the result of the last call, and decide what to do next."""
        step, slip = self._steps[self._at], self._slip
        if slip == "repeated_call" and self._attempt < 2:
            self._attempt += 1
            return
        if self._broken is not None and not self._mended and _FAULT.search(text) and (step.edit or step.run):
            # Told that the file is broken now: put back what was left out.
            self._mended, self._slip, self._attempt = True, "", 0
            self._steps.insert(self._at + 1, self._broken)
            self._at += 1
            return
        if self._is_done(step, text):
            self._at, self._attempt, self._slip = self._at + 1, 0, ""
            self._sent = None
            return
        self._attempt += 1
        if self._attempt >= _ATTEMPTS:
            self._answer = "I could not do it."
            return
        if self._is_shown(step, text, offer):
            self._slip = ""
        elif self._random("look").random() < LOOKS_AGAIN:
            self._slip = ""
            if step.edit:
                self._cured.add(step)
                self._steps.insert(self._at, Step(view=step.edit))

    def _is_done(self, step: Step, text: str) -> bool:
        if step.view:
            return not (self._slip in ("wrong_path", *_REPEATED) and _REFUSED.search(text[:600]))
        if step.run:
            return not (self._slip and _REFUSED.search(text[:300]) and "FAILED" not in text)
        if step.edit or step.create:
            # What follows may quote the file.
            first = text.lstrip()[:160]
            return bool(_SUCCEEDED.search(first) and not _REFUSED.search(first)) or not _REFUSED.search(text[:600])
        return not (self._slip and _REFUSED.search(text[:600]))

    def _is_shown(self, step: Step, text: str, offer: Offer) -> bool:
        """Return whether a result shows how the call should have been."""
        if self._slip == "old_text":
            wanted = [line.strip() for line in step.old.splitlines() if line.strip()]
            return all(line in text for line in wanted)
        if self._slip == "wrong_path":
            return step.view in text
        if self._slip == "foreign_name":
            return any(re.search(rf"\b{re.escape(tool.name)}\b", text) for tool in offer.tools)
        # An error about the arguments says what to change; so does any other.
        return True

    def _conclude(self, step: Step, offer: Offer) -> Said:
        if step.seen and step.seen not in self._seen:
            search = offer.search(step.else_search, step.path) if step.else_search and self._attempt == 0 else None
            if search is not None:
                self._attempt = 1
                self._sent, self._slip = None, ""
                return Said("", search.name, json.dumps(search.arguments))
            self._answer = "I do not know."
        else:
            self._answer = step.answer
        return Said(self._answer)

    def _call(self, step: Step, offer: Offer) -> Call | None:
        if step.view:
            return offer.view(step.view)
        if step.search:
            return offer.search(step.search, step.path)
        if step.edit:
            return offer.edit(step.edit, step.old, step.new)
        if step.create:
            return offer.create(step.create, step.text)
        return offer.run(step.run)


_REPEATED: Final = ("old_text", "foreign_name", "wrong_path")
"""Mistakes that a model repeats until a result shows what is right."""


def _foreign(step: Step) -> Call | None:
    kind = "view" if step.view else "edit" if step.edit else "create" if step.create else "run" if step.run else ""
    if kind not in FOREIGN:
        return None
    name, names = FOREIGN[kind]
    values = {
        "path": step.view or step.edit or step.create,
        "old": step.old,
        "new": step.new,
        "text": step.text,
        "command": step.run,
    }
    return Call(name, {given: values[ours] for ours, given in names.items()})
