"""Versions of the messages API: a caller's version is sent on to providers that are known to accept it."""

import json
from dataclasses import dataclass

import pytest

from tests.pairs.table import LEAST
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.provider_quirks import known
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

OLD, NEW = "2023-06-01", "2026-10-21"
BOTH = Quirks(versions=(OLD, NEW))
MESSAGES = TEXT_FORMATS["messages"]


@dataclass(frozen=True)
class Case:
    id: str
    version: str
    quirks: Quirks
    sent: str
    report: str = ""


CASES = [
    Case("none", "", BOTH, OLD),
    Case("the older one", OLD, NO_QUIRKS, OLD),
    Case("the newer one", NEW, BOTH, NEW),
    Case("the newer one for an unknown provider", NEW, NO_QUIRKS, OLD, f"anthropic-version={OLD}"),
    Case("the newer one for a provider of the older one", NEW, Quirks(versions=(OLD,)), OLD, f"anthropic-version={OLD}"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_body_of_the_format_is_sent_with_a_version_that_the_provider_accepts(case: Case) -> None:
    headers = {"anthropic-version": case.version} if case.version else {}
    request, _, notes = MESSAGES.decode_request(json.dumps(LEAST["messages"]).encode(), headers)
    sent = MESSAGES.encode_request(request, "m", False, case.quirks, notes)
    assert (sent.headers["anthropic-version"], sent.report.header()) == (case.sent, case.report)


@pytest.mark.parametrize("face", ["chat", "responses", "native"])
def test_a_translated_request_has_the_older_version(face: str) -> None:
    request, _, notes = TEXT_FORMATS[face].decode_request(json.dumps(LEAST[face]).encode(), {})
    sent = MESSAGES.encode_request(request, "m", False, BOTH, notes)
    assert (sent.headers["anthropic-version"], sent.report.header()) == (OLD, "")


@pytest.mark.parametrize("version", ["2099-01-01", "", "bedrock-2023-05-31"])
def test_an_unknown_version_is_refused_in_the_shape_of_messages(version: str) -> None:
    assert MESSAGES.decode_count is not None
    for decode in (MESSAGES.decode_request, MESSAGES.decode_count):
        with pytest.raises(UmgError) as caught:
            decode(json.dumps(LEAST["messages"]).encode(), {"anthropic-version": version})
        assert caught.value.reason == pb.ERROR_REASON_INVALID_FIELD
        assert caught.value.metadata["field"] == "anthropic-version"
        body = json.loads(MESSAGES.encode_error(caught.value, 400))
        assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
        assert "anthropic-version" in body["error"]["message"]


@dataclass(frozen=True)
class Provider:
    id: str
    base_url: str
    versions: tuple[str, ...] | None


PROVIDERS = [
    Provider("the vendor", "https://api.anthropic.com/v1", (OLD, NEW)),
    Provider("Foundry", "https://r.services.ai.azure.com/anthropic/v1", (OLD, NEW)),
    Provider("Bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1", None),
    Provider("another provider", "https://api.deepseek.com/anthropic", None),
]


@pytest.mark.parametrize("case", PROVIDERS, ids=lambda case: case.id)
def test_the_newer_version_is_sent_to_providers_that_are_known_to_accept_it(case: Provider) -> None:
    assert known("claude-opus-5", "", case.base_url, "messages", certain=True).versions == case.versions
