"""Golden files of the programs' requests, for `tests/unit/wire`: `python -m tests.world.agents.golden` records them again.

Of each program the largest request of the work on a file is kept, which has the tools, the call and the result; of Codex
also its requests for the summary of a long session. Details of the machine and of the run are replaced, long texts are
cut, and of the tools those stay that were called or have a field which none before them has.
"""

import asyncio
import base64
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.world.agents.all import run_all
from tests.world.agents.cases import settings_of, works_alone
from tests.world.agents.install import Installed, installed
from tests.world.agents.long_sessions import OWN_REQUEST, SESSIONS, TRIGGER, Session, run_session
from tests.world.agents.programs import PROGRAMS
from tests.world.agents.recorder import Exchange
from tests.world.agents.run import Case
from tests.world.agents.scenarios import BY_NAME as SCENARIO

WIRE = Path(__file__).parents[2] / "unit" / "wire"
PATHS = {  # of the requests that generate, by format
    "chat": re.compile(r"/v1/chat/completions"),
    "responses": re.compile(r"/v1/responses"),
    "messages": re.compile(r"/v1/messages(\?.*)?"),
    "native": re.compile(r"/v1beta/models/[^/]+:(stream)?[gG]enerateContent(\?.*)?"),
}
HISTORY = ("messages", "input", "contents")  # fields that hold the conversation
PROSE = ("text", "description", "content", "instructions", "system", "output")  # fields of texts to cut
STATES = ("signature", "thoughtSignature", "encrypted_content")  # fields of state of the provider
STATE = base64.b64encode(b"state that belongs to the provider").decode()
LONG, HEAD, TAIL = 160, 80, 30
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
# Texts that differ from run to run -> their replacement. The order matters: a date may be part of an id.
VARYING = (
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "00000000-0000-4000-8000-000000000000"),
    (re.compile(r"\b[0-9a-f]{40,}\b"), "0" * 64),
    (re.compile(r"\b(toolu_|call_t?|f)(\d)[A-Za-z0-9]{12,}"), r"\1\2Example"),
    (re.compile(r"Chunk ID: \w+\nWall time: [\d.]+"), "Chunk ID: 0a0b0c\nWall time: 0.01"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "2026-01-02"),
    (re.compile(rf"(?:(?:{DAYS}),? )?(?:{MONTHS}) \d{{1,2}}, 20\d\d"), "Friday, January 2, 2026"),
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \d\d 20\d\d\b"), "Fri Jan 02 2026"),
    (re.compile(r"\b1[78]\d{11}\b"), "1767312000000"),
    (re.compile(r"\b(?:Linux|linux) \d+\.\d+[\w.+~-]*"), "Linux 6.1.0"),
)


def clean(body: Any, folder: Path, packages: Path) -> Any:
    """Return a recorded body without the traces of the run in `folder` and of the machine."""
    places = {
        str(folder / "project"): "/home/user/project",
        str(folder / "home"): "/home/user",
        str(folder): "/home/user",
        str(packages): "/opt/agents",
    }

    def cleaned(text: str) -> str:
        for place, replacement in places.items():
            text = text.replace(place, replacement).replace(place.lstrip("/"), replacement.lstrip("/"))
        for pattern, constant in VARYING:
            text = pattern.sub(constant, text)
        return text

    def changed(name: str, text: str) -> str:
        if name in STATES:
            return STATE
        return _cut(cleaned(text)) if name in PROSE else cleaned(text)

    return _fewer_tools(_walked(body, changed))


def _walked(value: Any, change: Callable[[str, str], str], name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _walked(each, change, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_walked(each, change, name) for each in value]
    return change(name, value) if isinstance(value, str) else value


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:HEAD]} [...] {text[-TAIL:]}"


def _fewer_tools(body: Any) -> Any:
    """Return the body with those of its tools that differ from all before them, or were called."""
    turns = [turn for name in HISTORY for turn in body.get(name, ()) if "tools" not in turn]
    called = set(re.findall(r'"name": "(\w+)"', json.dumps(turns)))
    for tools in _lists_of_tools(body):
        known = set[str]()
        kept = []
        for tool in tools:
            fields = set(_fields(tool))
            if fields - known or tool.get("function", tool).get("name") in called:
                kept.append(tool)
            known |= fields
        tools[:] = kept
    return body


def _lists_of_tools(value: Any) -> Iterator[list[Any]]:
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        if name in ("tools", "functionDeclarations") and isinstance(each, list):
            yield each
        if isinstance(each, dict | list):
            yield from _lists_of_tools(each)


def _fields(tool: Any, path: str = "") -> Iterator[str]:
    """Yield the keywords of a tool and of its schema. The names of the schema's properties are left out of their paths."""
    for name, value in tool.items():
        at = path if path.endswith("properties") else f"{path}.{name}"
        yield f"{at}={value}" if name == "type" and isinstance(value, str) else at
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield from _fields(each, "properties" if name == "properties" else at)


def largest(exchanges: Sequence[Exchange], name: str) -> Any:
    """Return the largest body that was sent to generate in a format."""
    bodies = [each.body for each in exchanges if PATHS[name].fullmatch(each.path)]
    return json.loads(max(bodies, key=len))


@dataclass(frozen=True)
class Recording:
    name: str
    case: Case

    @property
    def folder(self) -> Path:
        return WIRE / self.case.settings.format / self.name


def recordings() -> Iterator[Recording]:
    """Yield each program with its usual settings, and the settings of models whose requests have another form."""
    for program in PROGRAMS:
        usual = settings_of(program)[0]
        gateway = not works_alone(program, usual)
        case = Case(program, usual, SCENARIO["file"], usual.format, gateway=gateway)
        name = program.name.lower().replace(" ", "_")
        yield Recording(name, case)
        if program.name == "Codex":
            yield Recording("codex_tool_search", replace(case, model="gpt-5.5"))
            yield Recording("codex_additional_tools", replace(case, model="gpt-6.1-sol"))
        if program.name == "Claude Code":
            yield Recording("claude_code_picture", replace(case, scenario=SCENARIO["picture"]))


@dataclass(frozen=True)
class SummaryRequest:
    """Golden file: the request by which Codex has a long session summarized, and the name of its directory."""

    name: str
    session: Session
    words: str  # that its last item contains

    @property
    def folder(self) -> Path:
        return WIRE / self.session.settings.format / self.name


SUMMARY_REQUESTS = (
    SummaryRequest("codex_compaction_trigger", SESSIONS[0], TRIGGER),
    SummaryRequest("codex_own_summary", SESSIONS[-1], OWN_REQUEST),
)


def record_summary_requests(programs: Installed) -> None:
    for recording in SUMMARY_REQUESTS:
        with tempfile.TemporaryDirectory() as directory:
            _, sent, _ = asyncio.run(run_session(recording.session, programs, Path(directory)))
            body = next(body for body in sent if recording.words in json.dumps(body["input"][-1]))
            write(recording.folder, clean(body, Path(directory), programs.node.parent.parent))


def write(folder: Path, body: Any) -> None:
    folder.mkdir(exist_ok=True)
    text = json.dumps(body, indent=2, ensure_ascii=False)
    (folder / "request.json").write_text(f"{text}\n", encoding="utf-8")


def main() -> None:
    programs, found = installed(), list(recordings())
    with tempfile.TemporaryDirectory() as directory:
        outcomes = asyncio.run(run_all([each.case for each in found], programs, Path(directory), 2))
        for place, (recording, outcome) in enumerate(zip(found, outcomes, strict=True)):
            assert not outcome.problems, outcome.problems
            sent = largest(outcome.exchanges, recording.case.settings.format)
            write(recording.folder, clean(sent, Path(directory) / str(place), programs.node.parent.parent))
    record_summary_requests(programs)


if __name__ == "__main__":
    main()
