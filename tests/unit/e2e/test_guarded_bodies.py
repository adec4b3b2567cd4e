"""Guards of bodies that are passed through: members that the gateway does not know, options, names and labels."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.e2e.test_guards import MASKED, SECRET, SECRETS, Provider, gateway, responding

Json = dict[str, Any]
TURN = {"role": "user", "content": "hi"}
REFUSING = SECRETS.replace("cards]", "cards], action: refuse")
NOTED = f"note {SECRET}"


@dataclass(frozen=True)
class Member:
    """Members of a body of chat with a secret, and the ones that the provider gets."""

    id: str
    given: Json
    sent: Json


def masked(value: Any) -> Any:
    return json.loads(json.dumps(value).replace(SECRET, MASKED))


def member(name: str, value: Any) -> Member:
    return Member(name, {name: value}, {name: masked(value)})


SCHEMA = {"type": "object", "properties": {"key": {"type": "string", "description": NOTED}}}
MEMBERS = [
    member("vendor_note", NOTED),
    member("vendor.note", [1, {"deep": NOTED}]),
    member("stop", [SECRET]),
    member("metadata", {"owner": NOTED}),
    member("user", NOTED),
    member("safety_identifier", NOTED),
    member("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}),
    member("messages", [{**TURN, "name": SECRET}]),
    member("messages", [{**TURN, "vendor_note": NOTED}]),
    member("tools", [{"type": "function", "function": {"name": "f"}, "vendor_note": NOTED}]),
    Member("a card as a number", {"vendor_number": 4111111111111111}, {"vendor_number": "[CARD_NUMBER]"}),
    Member("a name", {SECRET: "note"}, {MASKED: "note"}),
]


@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.id)
async def test_a_member_is_masked_in_the_body_that_the_provider_gets(case: Member, tmp_path: Path) -> None:
    async with gateway(tmp_path, responding("ok")) as here:
        body = {"messages": [TURN], **case.given, "vendor_other": 1.0}
        status, headers, got = await here.post("/v1/chat/completions", body)
        assert (status, headers["x-umg-guards"]) == (200, "request:secrets=masked, response:secrets=allow"), got
        [sent] = here.provider.requests
    assert {name: sent.get(name) for name in case.sent} == case.sent
    assert sent["vendor_other"] == 1.0


@pytest.mark.parametrize("case", MEMBERS, ids=lambda case: case.id)
async def test_a_request_with_a_secret_in_a_member_is_refused(case: Member, tmp_path: Path) -> None:
    async with gateway(tmp_path, responding("ok"), REFUSING) as here:
        status, _, got = await here.post("/v1/chat/completions", {"messages": [TURN], **case.given})
        assert (status, here.provider.requests) == (400, []), got


async def test_a_member_of_a_response_that_a_guard_changes_does_not_leave(tmp_path: Path) -> None:
    provider = responding("ok")
    provider.message |= {"vendor_note": NOTED, "vendor_other": 7}
    async with gateway(tmp_path, provider) as here:
        status, headers, got = await here.post("/v1/chat/completions", {"messages": [TURN]})
    assert (status, headers["x-umg-guards"]) == (200, "request:secrets=allow, response:secrets=masked"), got
    assert SECRET not in json.dumps(got)
    assert got["choices"][0]["message"]["content"] == "ok"


async def test_a_service_gets_only_the_members_that_the_gateway_does_not_know(tmp_path: Path) -> None:
    guards = "  - {name: pass, kind: webhook, url: 'URL', timeout: 60}\n"
    async with gateway(tmp_path, responding("ok"), guards) as here:
        here.provider.message["vendor_note"] = "of the provider"
        await here.chat(vendor_note={"a": 1})
        request, response = here.servers.checks_of("pass")
    assert [(text.path, text.text) for text in request.texts] == [
        ("messages[0].parts[0].text.text", "hi"),
        ("source.body.vendor_note", '{"vendor_note":{"a":1}}'),
    ]
    assert [(text.path, text.text) for text in response.texts] == [
        ("candidates[0].message.parts[0].text.text", "ok"),
        ("source.body", '{"choices[0].message.vendor_note":"of the provider"}'),
    ]


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/rerank", "/v1/moderations"])
async def test_members_of_other_operations_are_masked_in_their_bodies(path: str, tmp_path: Path) -> None:
    protocols = {"/v1/embeddings": "embeddings", "/v1/rerank": "rerank", "/v1/moderations": "moderations"}
    body = {"input": NOTED, "query": NOTED, "documents": [NOTED], "vendor_note": NOTED, "vendor_other": 1}
    more = f"  - {{name: other, protocols: [{protocols[path]}], base_url: 'PROVIDER', api_key: k, models: [n]}}\n"
    async with gateway(tmp_path, Provider({}), SECRETS, more) as here:
        await here.post(path, {**body, "model": "n"})
        sent = here.provider.requests[0]
    assert {name: sent[name] for name in body} == masked(body)
