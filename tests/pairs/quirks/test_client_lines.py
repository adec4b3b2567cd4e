"""Lines that agents put in front of the system prompt for their own vendor: they reach no other provider, whose prompt
cache would find no beginning again.
"""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.pairs.quirks.requests import encoded
from tests.pairs.table import TEXT_PROVIDERS, every_upstream
from tests.pairs.vendors.gateway import Model, send
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.prompt_lines_of_agents import CLIENT_LINES, LINE_BEGINNINGS
from umg_grpc.knowledge.provider_quirks import PROVIDER_QUIRKS
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.agent_prompt_lines import without_client_lines
from umg_grpc.wire.dropped_fields_report import Report

NAME = "x-anthropic-billing-header"
LINE = f"{NAME}: cc_version=2.1.332.8d4; cc_entrypoint=sdk-cli; cch=36ee5;"
AGENT = "You are an agent."
TURN = {"role": "user", "content": "Hi"}
BODY: dict[str, Any] = {"max_tokens": 99, "messages": [TURN]}
OTHERS = [protocol for protocol in TEXT_PROVIDERS if protocol != "messages"]


def claude_code(line: str = LINE) -> dict[str, Any]:
    """Return the prompt of a request as Claude Code sends it."""
    mark = {"type": "ephemeral"}
    return {"system": [{"type": "text", "text": line}, {"type": "text", "text": AGENT, "cache_control": mark}]}


@every_upstream
def test_the_line_of_an_agent_is_left_out_and_named(upstream: str) -> None:
    body, report = encoded("messages", upstream, NO_QUIRKS, **claude_code())
    written = json.dumps(body)
    assert NAME not in written
    assert AGENT in written
    assert NAME in report.split(", ")


@every_upstream
def test_two_requests_that_differ_in_the_line_alone_have_one_prompt(upstream: str) -> None:
    first, _ = encoded("messages", upstream, NO_QUIRKS, **claude_code())
    second, _ = encoded("messages", upstream, NO_QUIRKS, **claude_code(LINE.replace("36ee5", "0aaa9")))
    assert json.dumps(first) == json.dumps(second)


def test_the_rest_of_a_body_in_the_providers_own_format_stays_as_it_is() -> None:
    body, report = encoded("messages", "messages", NO_QUIRKS, **claude_code())
    assert body["system"] == claude_code()["system"][1:]
    assert report == NAME


@dataclass(frozen=True)
class Case:
    """System prompt of a caller in the messages format, and the one that is sent; None for none."""

    id: str
    system: Any
    sent: Any


BLOCKS = [
    Case("a text", f"{LINE}\n\n{AGENT}", AGENT),
    Case("a text that is only the line", LINE, None),
    Case("a block with more text", [{"type": "text", "text": f"{LINE}\n{AGENT}"}], [{"type": "text", "text": AGENT}]),
    Case("several lines", f"{LINE}\nx-anthropic-other: 1\n{AGENT}", AGENT),
    Case("a later line", f"{AGENT}\n{LINE}", f"{AGENT}\n{LINE}"),
    Case(
        "a later block",
        [{"type": "text", "text": AGENT}, {"type": "text", "text": LINE}],
        [{"type": "text", "text": AGENT}, {"type": "text", "text": LINE}],
    ),
    Case("a text about the line", f"{NAME} is a line: {AGENT}", f"{NAME} is a line: {AGENT}"),
]


@pytest.mark.parametrize("case", BLOCKS, ids=lambda case: case.id)
def test_only_lines_at_the_start_of_the_first_block_are_left_out(case: Case) -> None:
    body, _ = encoded("messages", "messages", NO_QUIRKS, system=case.system)
    assert body.get("system") == case.sent


@pytest.mark.parametrize(
    "model",
    [
        Model("anthropic", "claude-opus-5"),
        Model("anthropic", "claude-sonnet-4-6"),
    ],
    ids=lambda model: model.id,
)
def test_the_agents_own_vendor_gets_its_line(model: Model) -> None:
    sent = send(model, "messages", BODY | claude_code(), stream=False)
    assert json.loads(sent.body)["system"] == claude_code()["system"]
    assert NAME not in sent.dropped


@pytest.mark.parametrize(
    "model",
    [
        Model("bedrock-anthropic", "bedrock/anthropic.claude-sonnet-4-6", "anthropic.claude-sonnet-4-6"),
        Model("deepseek", "deepseek-v4-pro"),
        Model("openrouter", "openrouter/anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5"),
        Model("openai", "gpt-6-sol"),
        Model("gemini", "gemini-3.8-flash"),
    ],
    ids=lambda model: model.id,
)
def test_no_other_vendor_gets_the_line(model: Model) -> None:
    sent = send(model, "messages", BODY | claude_code(), stream=False)
    assert NAME.encode() not in sent.body
    assert sent.dropped[NAME] is None


@pytest.mark.parametrize("upstream", OTHERS)
def test_the_line_is_no_loss_of_the_request(upstream: str) -> None:
    body = {"model": "m", **BODY, "system": f"{LINE}\n{AGENT}"}
    request, _, notes = TEXT_FORMATS["messages"].decode_request(json.dumps(body).encode(), {})
    report = TEXT_FORMATS[upstream].encode_request(request, "m", False, NO_QUIRKS, notes).report
    assert (report.lost, NAME in report.dropped) == (0, True)
    report.refuse()  # strict mode takes it, too


def test_a_provider_that_reads_the_line_gets_it_from_callers_of_every_format() -> None:
    reading = Quirks(client_lines=("x-anthropic-",))
    system = {"role": "system", "content": f"{LINE}\n{AGENT}"}
    body, report = encoded("chat", "messages", reading, messages=[system, TURN])
    assert (body["system"], report) == (f"{LINE}\n{AGENT}", "")
    body, report = encoded("chat", "messages", NO_QUIRKS, messages=[system, TURN])
    assert (body["system"], report) == (AGENT, NAME)


def test_each_line_that_a_vendor_reads_is_in_the_table() -> None:
    read = {line for row in PROVIDER_QUIRKS for line in row.quirks.client_lines or ()}
    assert read <= set(LINE_BEGINNINGS)
    assert all(row.client and row.source and row.as_of for row in CLIENT_LINES)


def test_a_text_without_a_line_is_the_same_object() -> None:
    text = AGENT * 9
    assert without_client_lines(text, NO_QUIRKS, Report()) is text


COPIES = [
    Case("a text", f"{LINE}\n{AGENT}", AGENT),
    Case("a text that is only the line", LINE, None),
    Case("parts", ["", LINE, AGENT], ["", AGENT]),
    Case("no line", AGENT, AGENT),
]
"""Contents of the first turn of agents that copy the line; a list is the texts of parts, behind an empty text."""


def content_of(face: str, given: Any) -> Any:
    """Return the content of a turn."""
    kind = "text" if face == "chat" else "input_text"
    return [{"type": kind, "text": text} for text in given[1:]] if isinstance(given, list) else given


@pytest.mark.parametrize("upstream", TEXT_PROVIDERS)
@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("case", COPIES, ids=lambda case: case.id)
@pytest.mark.parametrize(("face", "member"), [("chat", "messages"), ("responses", "input")])
def test_the_line_in_the_first_turn_of_other_agents_is_left_out(
    face: str, member: str, case: Case, role: str, upstream: str
) -> None:
    turns = [{"role": role, "content": content_of(face, case.system)}, TURN]
    body, report = encoded(face, upstream, NO_QUIRKS, **{member: turns})
    assert NAME not in json.dumps(body)
    assert (AGENT in json.dumps(body)) == (case.sent is not None)
    assert (NAME in report) == (case.system != case.sent)
    if upstream == face:
        first = [{"role": role, "content": content_of(face, case.sent)}] if case.sent is not None else []
        assert body[member] == [*first, TURN]


def test_a_line_of_the_user_stays() -> None:
    turns = [{"role": "user", "content": f"{LINE}\n{AGENT}"}]
    for face, member in (("chat", "messages"), ("responses", "input")):
        for upstream in TEXT_PROVIDERS:
            body, _ = encoded(face, upstream, NO_QUIRKS, **{member: turns})
            assert NAME in json.dumps(body)
