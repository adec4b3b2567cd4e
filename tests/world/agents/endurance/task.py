"""Scripted model of a long task: a program reads the parts of a text and pictures, some in each turn.

The model remembers its own calls. The provider's record of a conversation ends at a compaction, the model's does not.
"""

import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import Any

from PIL import Image

from tests.proofs.cache.task import part_text
from tests.support.providers.scenarios import (
    CUSTOM,
    THOUGHTS,
    Answer,
    Call,
    Failure,
    Media,
    ScenarioRequest,
    text_answer,
)

PROMPT = "Read the {parts} parts of the long text in the folder `{folder}`, some at a time."
PATTERN = re.compile(r"parts of the long text in the folder `(?P<folder>[^`]+)`")
PART = re.compile(r"part (\d+) of \d+")
PAUSED = "There are more parts."
DONE = "All parts of the long text were read."
SUMMARY = (
    "<summary><state_snapshot>The user's task: {prompt} The parts up to {last} were read.</state_snapshot></summary>"
)
OTHER = "Understood."
CALLS_OF_TURNS = (1, 2, 3, 2)
"""Calls of each turn, in turn: their average is two."""
PICTURE_EVERY = 20
PICTURE_HEIGHT = 30
COMPACTIONS = (
    "Your task is to create a detailed summary",  # Claude Code
    "Please provide a concise summary of our conversation",  # Continue
    "CONTEXT CHECKPOINT COMPACTION",  # Codex
    "generate the updated <state_snapshot>",  # Gemini CLI
    "Critically evaluate the <state_snapshot>",
    "You are the component that summarizes a conversation",  # Qwen Code
    "<template>",  # opencode
)
"""Words of the instructions by which programs request a summary of the conversation."""


@dataclass(frozen=True)
class Plan:
    """Size of a task, and the turns at which something fails."""

    turns: int = 100
    unavailable_at: int = 20
    """Turn that the provider first answers with 503."""
    cut_at: int = 30
    """Turn at which the provider first cuts the connection before its response."""
    restarted_at: int = 60
    """Turn in whose answer the gateway gets SIGTERM."""
    stages: int = 1
    """Stages of the task. At the end of each but the last the model answers with a text, and has to be continued."""
    lines: int = 1
    """Lines of each part."""

    @property
    def batches(self) -> list[tuple[int, ...]]:
        """Numbers of the parts that each turn reads."""
        found, first = list[tuple[int, ...]](), 1
        for _, size in zip(range(self.turns), cycle(CALLS_OF_TURNS), strict=False):
            found.append(tuple(range(first, first + size)))
            first += size
        return found

    @property
    def parts(self) -> int:
        return self.batches[-1][-1]

    @property
    def failing(self) -> tuple[int, ...]:
        """Turns that the provider first fails."""
        return self.unavailable_at, self.cut_at

    @property
    def pauses(self) -> set[int]:
        """Turns after which a stage ends."""
        return {self.turns * number // self.stages for number in range(1, self.stages)}

    def texts(self, *, pictures: bool) -> list[int]:
        """Return the numbers of the parts that are no pictures."""
        return [number for number in range(1, self.parts + 1) if not is_picture(number, pictures=pictures)]


def is_picture(number: int, *, pictures: bool) -> bool:
    """Return whether a part is a picture. `pictures`: whether the program reads pictures by a tool."""
    return pictures and number % PICTURE_EVERY == 0


def prepare(folder: Path, plan: Plan, *, pictures: bool) -> None:
    """Write the parts into the folder of a program. Each picture has a width of its own."""
    for number in range(1, plan.parts + 1):
        if is_picture(number, pictures=pictures):
            Image.new("RGB", (_width(number), PICTURE_HEIGHT), (number, 30, 30)).save(folder / f"part-{number}.png")
        else:
            head, line = part_text(number, plan.parts).splitlines()
            text = "\n".join([head, *[line] * plan.lines])
            (folder / f"part-{number}.txt").write_text(text, encoding="utf-8")


def _width(number: int) -> int:
    return 40 + number


@dataclass
class LongTask:
    """Model that calls the tools of a program, and checks that the results of each turn come back once and in order."""

    plan: Plan
    pictures: bool
    turn: int = 0
    """Turns that were answered."""
    compactions: int = 0
    failures: int = 0
    problems: list[str] = field(default_factory=list)
    _pending: tuple[int, ...] = ()
    """Calls of the last turn."""
    _compacted: bool = False
    """Whether a summary was requested after the last turn."""

    def __call__(self, request: ScenarioRequest) -> Answer | Failure:
        found = [match for _, text in request.turns for match in PATTERN.finditer(text)]
        if request.json:
            return text_answer(json.dumps({"reasoning": PAUSED, "next_speaker": self._next_speaker}))
        if not found:
            return text_answer(OTHER)
        folder = found[-1]["folder"]
        if any(words in request.last_of_user for words in COMPACTIONS):
            self.compactions += 1
            self._compacted = True
            prompt = PROMPT.format(parts=self.plan.parts, folder=folder)
            return text_answer(SUMMARY.format(prompt=prompt, last=max(self._pending, default=0)))
        if not request.tools:
            return text_answer(OTHER)
        if self.turn > self.plan.turns and not request.results:  # some programs continue after a summary
            return text_answer(DONE)
        self._check(request)
        return self._failure() or self._next(request, folder)

    @property
    def _next_speaker(self) -> str:
        return "model" if self.turn < self.plan.turns else "user"

    def _failure(self) -> Failure | None:
        planned = self.plan.failing
        if self.failures < len(planned) and self.turn + 1 == planned[self.failures]:
            self.failures += 1
            return Failure(503, "The model is overloaded.") if self.failures == 1 else Failure(0, "")
        return None

    def _next(self, request: ScenarioRequest, folder: str) -> Answer:
        self._compacted = False
        if self.turn in self.plan.pauses and self._pending:
            self._pending = ()
            return text_answer(PAUSED)
        self.turn += 1
        thoughts = (*THOUGHTS, f" Turn {self.turn}.") if request.thinking else ()
        if self.turn > self.plan.turns:
            self._pending = ()
            return replace(text_answer(DONE), thoughts=thoughts, signed=bool(thoughts))
        self._pending = self.plan.batches[self.turn - 1]
        calls = tuple(self._call(request.tools, number, folder) for number in self._pending)
        answer = Answer(thoughts=thoughts, signed=bool(thoughts), calls=calls)
        return replace(answer, breaks="waits") if self.turn == self.plan.restarted_at else answer

    def _call(self, tools: Mapping[str, Any], number: int, folder: str) -> Call:
        picture = is_picture(number, pictures=self.pictures)
        path = f"{folder}/part-{number}.{'png' if picture else 'txt'}"
        calls = (_reading(name, schema, path, picture=picture) for name, schema in tools.items())
        found = next((call for call in calls if call is not None), None)
        assert found is not None, f"no declared tool reads {path}: {', '.join(tools)}"
        return found

    def _check(self, request: ScenarioRequest) -> None:
        """Note a problem unless the results are those of the last turn's calls."""
        if self.turn > self.plan.turns:
            self.problems.append("there was a request after the final answer")
        if not request.results and (self._compacted or not self._pending):
            return
        media = [*request.media, *(medium for result in request.results for medium in result.media)]
        widths = [width for medium in media for width in _widths(medium)]
        read = [int(number) for result in request.results for number in PART.findall(result.text)]
        texts = [number for number in self._pending if not is_picture(number, pictures=self.pictures)]
        missing = [number for number in self._pending if number not in texts and widths.count(_width(number)) != 1]
        # In chat a picture is in a turn of the user behind the results, which are then no longer the last ones.
        is_behind = not request.results and len(texts) < len(self._pending)
        if missing or not (is_behind or (read == texts and len(request.results) == len(self._pending))):
            shown = [result.text[:80] for result in request.results]
            self.problems.append(f"turn {self.turn} called {self._pending}, its results are {shown}, {widths}")


def _widths(medium: Media) -> Iterator[int]:
    with Image.open(io.BytesIO(medium.data)) as picture:
        yield picture.size[0]


def _reading(name: str, schema: Any, path: str, *, picture: bool) -> Call | None:
    """Return the call by which a tool reads a part; None if the tool cannot read it."""
    fields = {} if schema == CUSTOM else schema.get("properties") or {}
    shell = f"cat {shlex.quote(path)}"
    match re.split(r"\.|__", name)[-1].replace("_", "").lower():
        case "read" | "readfile":
            return Call(name, {field: path for field in fields if "path" in field.lower()})
        case "viewimage" if picture:
            return Call(name, {"path": path})
        case "execcommand" | "shellcommand" if not picture:
            return Call(name, {field: shell for field in ("cmd", "command") if field in fields})
    return None
