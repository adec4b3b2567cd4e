"""Scripted task of an agent: it reads the parts of a text one after the other, each by a call of a tool."""

import random
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.providers.scenarios import THOUGHTS, Answer, Call, Failure, ScenarioRequest, text_answer

PROMPT = "Read the {parts} parts of the text in the folder `{folder}`, one after the other."
PATTERN = re.compile(r"Read the (?P<parts>\d+) parts of the text in the folder `(?P<folder>[^`]+)`")
READ = re.compile(r"part (\d+) of (\d+)")
DONE = "All parts of the text were read."
OTHER = "Understood."
WORDS = ("def", "return", "value", "{", "}", "(self)", "import", "0.25", "# note", "tür", "\t", "assert", "None")
WORDS_OF_PART = 300


def part_text(number: int, parts: int) -> str:
    """Return a part of the text, the same in each run."""
    chosen = random.Random(number)
    words = " ".join(chosen.choice(WORDS) for _ in range(WORDS_OF_PART))
    return f"part {number} of {parts}\n{words}\n"


def prepare(folder: Path, parts: int) -> None:
    """Write the parts of the text into the folder of a program."""
    for number in range(1, parts + 1):
        (folder / f"part-{number}.txt").write_text(part_text(number, parts), encoding="utf-8")


def answer_to(request: ScenarioRequest) -> Answer | Failure:
    """Return the model's next step, with reasoning where the request wants it. Each step has a thought of its own, from
    which the chat provider makes the ids of its calls.
    """
    prompts = [found for role, text in request.turns if role == "user" for found in PATTERN.finditer(text)]
    if not prompts:
        return text_answer(OTHER)
    parts, folder = int(prompts[-1]["parts"]), prompts[-1]["folder"]
    read = [int(found[1]) for result in request.results for found in READ.finditer(result.text)]
    number = max(read, default=0) + 1
    answer = text_answer(DONE) if number > parts else _step(request, f"{folder}/part-{number}.txt")
    return (
        replace(answer, thoughts=(*THOUGHTS, f" Step {len(prompts)}.{number}."), signed=True)
        if request.thinking
        else answer
    )


def _step(request: ScenarioRequest, path: str) -> Answer:
    for name, schema in request.tools.items():
        if (call := _reading(name, schema.get("properties") or {}, path)) is not None:
            return Answer(calls=(call,))
    return text_answer(f"None of the declared tools reads files: {', '.join(request.tools)}.")


def _reading(name: str, fields: Mapping[str, Any], path: str) -> Call | None:
    """Return the call by which a tool reads a file; None if the tool cannot read."""
    match re.split(r"\.|__", name)[-1].replace("_", "").lower():
        case "read" | "readfile":
            return Call(name, {field: path for field in fields if "path" in field.lower()})
        case "execcommand" | "shellcommand":
            return Call(name, {field: f"cat {shlex.quote(path)}" for field in ("cmd", "command") if field in fields})
    return None
