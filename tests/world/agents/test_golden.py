"""Cleaning of the programs' golden requests."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.world.agents import golden

FOLDER, PACKAGES = Path("/tmp/run-1/0"), Path("/opt/venv/share")
RECORDED = [each for each in golden.recordings() if each.folder.exists()]
ALL_RECORDED = [*RECORDED, *golden.SUMMARY_REQUESTS]
TRACES = re.compile(r"/tmp/|/venv|\.venv|sk-|127\.0\.0\.1|localhost|20[^2]\d-|req_[0-9a-f]{8}")


@dataclass(frozen=True)
class Cleaned:
    id: str
    before: Any
    after: Any


CLEANED = [
    Cleaned(
        "paths",
        {"text": "in /tmp/run-1/0/project and /tmp/run-1/0/home/.x"},
        {"text": "in /home/user/project and /home/user/.x"},
    ),
    Cleaned("the place of the packages", {"url": "file:///opt/venv/share/a"}, {"url": "file:///opt/agents/a"}),
    Cleaned(
        "ids",
        {"id": "msg_01a20408-df5c-74f0-8d6b-098333aabd6a", "call_id": "call_t0Yvdzqw1iIfqTIwez"},
        {"id": "msg_00000000-0000-4000-8000-000000000000", "call_id": "call_t0Example"},
    ),
    Cleaned(
        "dates", {"text": "2031-11-22, Sunday, November 22, 2031"}, {"text": "2026-01-02, Friday, January 2, 2026"}
    ),
    Cleaned("a moment within JSON", {"user": '{"at":1795361354477}'}, {"user": '{"at":1767312000000}'}),
    Cleaned("a long text", {"text": "x" * 100 + "y" * 100}, {"text": f"{'x' * 80} [...] {'y' * 30}"}),
    Cleaned("long data", {"data": "x" * 200}, {"data": "x" * 200}),
    Cleaned("state of the provider", {"signature": "xyz"}, {"signature": golden.STATE}),
    Cleaned(
        "tools like those before them",
        {"tools": [{"name": name, "schema": {"type": "object", "properties": {name: {}}}} for name in ("a", "b")]},
        {"tools": [{"name": "a", "schema": {"type": "object", "properties": {"a": {}}}}]},
    ),
    Cleaned(
        "a tool that was called",
        {"messages": [{"name": "b"}], "tools": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
        {"messages": [{"name": "b"}], "tools": [{"name": "a"}, {"name": "b"}]},
    ),
    Cleaned(
        "tools within tools",
        {"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "b"}, {"name": "c", "strict": True}]}]},
        {"tools": [{"functionDeclarations": [{"name": "a"}, {"name": "c", "strict": True}]}]},
    ),
]


@pytest.mark.parametrize("case", CLEANED, ids=lambda case: case.id)
def test_values_of_the_run_are_replaced(case: Cleaned) -> None:
    assert golden.clean(case.before, FOLDER, PACKAGES) == case.after


def test_every_program_has_a_golden_request() -> None:
    assert list(golden.recordings()) == RECORDED


@pytest.mark.parametrize("recording", ALL_RECORDED, ids=lambda recording: recording.name)
def test_a_golden_request_holds_no_trace_of_a_run(recording: golden.Recording | golden.SummaryRequest) -> None:
    text = (recording.folder / "request.json").read_text(encoding="utf-8")
    assert TRACES.findall(text) == []
    assert golden.clean(json.loads(text), FOLDER, PACKAGES) == json.loads(text)
