"""Scripted model behind the gateway: decides the next step of a coding agent from the conversation.

It understands only the prompts below. Anything else that an agent sends around them (reminders, environments, requests
for a title) does not change its response.
"""

import io
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image

from tests.support.providers.scenarios import CUSTOM, THOUGHTS, Answer, Call, Failure, Media, ScenarioRequest, Usage

SPELL = "Spell the word `{word}` backwards."
WRITE = "Write the word `{word}` into the file `{path}`."
DESCRIBE = "Describe the picture `{path}`."
REMEMBER = "Remember the word `{word}`."
REMEMBER_LONG = "Remember the word `{word}` for a long time."
RECALL = "Spell the word that you remember backwards."

REMEMBERED = (REMEMBER, REMEMBER_LONG)
REFUSE = "Say the forbidden word `{word}`."

COMPACTED = "compacted"
"""Ending of the word in a summary, by which a response shows that it comes from the summary."""
SUMMARY_TAG = re.compile(r"<(?P<tag>summary|state_snapshot)>")
SUMMARY = re.compile(rf"{SUMMARY_TAG.pattern}|Do not mention the summary process")
"""Text by which the last turn of the user, or the system prompt, requests a summary of the conversation."""
FULL = Usage(prompt=900_000)
"""Usage that fills the context of the model, after which programs compact the conversation."""

UNKNOWN = "Understood."
REFUSED = "The provider says no forbidden words."
DONE = "The word is in the file."
NO_TOOL = "None of the declared tools does that: {names}."
NO_PICTURE = "There is no picture in this conversation."
NO_WORD = "There is no word to remember in this conversation."


@dataclass(frozen=True)
class Prompt:
    template: str
    values: Mapping[str, str]


def _pattern(template: str) -> re.Pattern[str]:
    escaped = re.escape(template).replace(r"\{word\}", r"(?P<word>\w+)").replace(r"\{path\}", r"(?P<path>[^`]+)")
    return re.compile(escaped)


PATTERNS = {
    template: _pattern(template) for template in (SPELL, WRITE, DESCRIBE, REMEMBER, REMEMBER_LONG, RECALL, REFUSE)
}


_SUMMARIZED = re.compile(PATTERNS[REMEMBER].pattern.replace(r"\w+", rf"\w+{COMPACTED}"))


def prompts(request: ScenarioRequest) -> list[Prompt]:
    """Return all prompts of the user's turns, oldest first."""
    text = "\n".join(text for role, text in request.turns if role == "user")
    found = [
        (match.start(), Prompt(template, match.groupdict()))
        for template, pattern in PATTERNS.items()
        for match in pattern.finditer(text)
    ]
    return [prompt for _, prompt in sorted(found, key=lambda each: each[0])]


def answer_to(request: ScenarioRequest) -> Answer | Failure:
    """Return the model's next step, with reasoning where the request wants it: its state must come back with results."""
    if any(prompt.template == REFUSE for prompt in prompts(request)):
        return Failure(400, REFUSED)
    answer = _step(request)
    return replace(answer, thoughts=THOUGHTS, signed=True) if request.thinking else answer


def _step(request: ScenarioRequest) -> Answer:
    """Return a call of one of the declared tools, or a text."""
    if request.json:
        return _text_answer(json.dumps(_instance(request.schema)))
    known = prompts(request)
    if SUMMARY.search(_requested(request)):
        return _summary(request, known)
    if not known:
        return _text_answer(UNKNOWN)
    template, values = known[-1].template, known[-1].values
    if template == SPELL:
        return _text_answer(backwards(values["word"]))
    if template == WRITE:
        return _write(request, values["path"], values["word"])
    if template == DESCRIBE:
        return _describe(request, values["path"])
    if template in REMEMBERED:
        answer = _text_answer(UNKNOWN)
        return replace(answer, usage=FULL) if template == REMEMBER_LONG else answer
    if (found := _SUMMARIZED.search("\n".join([request.system, *(text for _, text in request.turns)]))) is not None:
        return _text_answer(backwards(found["word"]))
    words = [prompt.values["word"] for prompt in known if prompt.template in REMEMBERED]
    return _text_answer(backwards(words[-1]) if words else NO_WORD)


def _requested(request: ScenarioRequest) -> str:
    return f"{request.system}\n{request.last_of_user}"


def _summary(request: ScenarioRequest, known: list[Prompt]) -> Answer:
    words = [prompt.values["word"] for prompt in known if prompt.template in REMEMBERED]
    text = REMEMBER.format(word=words[-1].removesuffix(COMPACTED) + COMPACTED) if words else UNKNOWN
    if (found := SUMMARY_TAG.search(_requested(request))) is not None:
        text = f"<{found['tag']}>\n{text}\n</{found['tag']}>"
    return replace(_text_answer(text), usage=FULL)


def backwards(word: str) -> str:
    """Return the word as the model spells it, which no prompt contains."""
    return word[::-1]


def described(kind: str, width: int, height: int) -> str:
    return f"It is {kind} of {width} x {height} pixels."


def _text_answer(text: str) -> Answer:
    return Answer(tuple(text[start : start + 7] for start in range(0, len(text), 7)))


def _instance(schema: Any) -> Any:
    """Return the smallest value of a JSON schema of the kind that agents send: its required fields alone."""
    if not isinstance(schema, dict):
        return {}
    if "enum" in schema:
        return schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: _instance(fields.get(name, {})) for name in schema.get("required", ())}
    return {"string": "none", "array": [], "boolean": False, "integer": 1, "number": 1}.get(kind)


# --- tools


def _write(request: ScenarioRequest, path: str, word: str) -> Answer:
    if request.results:
        return _text_answer(f"{DONE} {' '.join(request.results[-1].text.split())[:100]}")
    if not request.tools:
        return _text_answer(_edit(request, path, word))
    for name, schema in request.tools.items():
        if (call := _writing(name, schema, path, word)) is not None:
            return Answer(calls=(call,))
    return _text_answer(NO_TOOL.format(names=", ".join(request.tools)))


def _writing(name: str, schema: Mapping[str, Any], path: str, word: str) -> Call | None:
    """Return the call by which a tool writes the file; None if the tool cannot write."""
    fields = schema.get("properties") or {}
    shell = f"printf %s {word} > {shlex.quote(path)}"
    match _plain(name):
        case "write" | "writefile":
            return Call(name, _filled(fields, path, word))
        case "execcommand" | "shellcommand":
            return Call(name, {field: shell for field in ("cmd", "command") if field in fields})
        case "exec":  # a program that calls the other tools
            script = f"text(await tools.exec_command({{cmd: {json.dumps(shell)}}}))"
            return Call(name, {}, free=script) if schema == CUSTOM else Call(name, dict.fromkeys(fields, script))
    return None


def _edit(request: ScenarioRequest, path: str, word: str) -> str:
    block = f"<<<<<<< SEARCH\n=======\n{word}\n>>>>>>> REPLACE" if "SEARCH/REPLACE" in request.system else word
    return f"{DONE}\n\n{path}\n```\n{block}\n```\n"


def _describe(request: ScenarioRequest, path: str) -> Answer:
    media = [*request.media, *(medium for result in request.results for medium in result.media)]
    if media:
        return _text_answer(_words_on(media[-1]))
    if request.results:
        return _text_answer(NO_PICTURE)
    for name, schema in request.tools.items():
        if _plain(name) in ("read", "readfile", "viewimage"):
            return Answer(calls=(Call(name, _filled(schema.get("properties") or {}, path, "")),))
    return _text_answer(NO_PICTURE)


def _words_on(medium: Media) -> str:
    with Image.open(io.BytesIO(medium.data)) as picture:
        return described(medium.type, *picture.size)


def _plain(name: str) -> str:
    return re.split(r"\.|__", name)[-1].replace("_", "").lower()


def _filled(fields: Mapping[str, Any], path: str, content: str) -> dict[str, str]:
    return {
        name: path if "path" in name.lower() else content
        for name in fields
        if _plain(name) in ("path", "filepath", "absolutepath", "content")
    }
