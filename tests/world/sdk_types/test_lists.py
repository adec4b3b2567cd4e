"""Every top-level field, role and beta of the current SDKs is on a list: carried, left out as harmless, or refused."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import typing_extensions
from anthropic.types import anthropic_beta_param
from anthropic.types.beta import beta_message_param, message_create_params
from openai.types.chat import chat_completion_message_param, completion_create_params
from openai.types.responses import response_create_params

from umg_grpc.wire.chat import decode_messages as chat_content
from umg_grpc.wire.chat import recognized_json_members as chat_fields
from umg_grpc.wire.chat import schema as chat_schema
from umg_grpc.wire.core.messages_beta_features import BETA_FEATURES
from umg_grpc.wire.messages import decode_messages as messages_content
from umg_grpc.wire.messages import recognized_json_members as messages_fields
from umg_grpc.wire.messages import schema as messages_schema
from umg_grpc.wire.responses import recognized_json_members as responses_fields
from umg_grpc.wire.responses import schema as responses_schema

BESIDE_GENERATION = frozenset(
    {
        "admin-user-sign-out-2026-10-08",
        "analytics-usage-cost-2026-08-24",
        "ce-claude-code-managed-settings-2026-10-06",
        "ce-plugins-2026-09-01",
        "ce-user-management-2026-07-13",
        "dreaming-2026-04-21",
        "efs-2026-10-01",
        "experimental-claude-tag-2026-10-21",
        "google-managed-data-controls-2026-09-01",
        "managed-agents-2026-04-01",
        "message-batches-2024-09-24",
        "spend-limit-reads-2026-09-26",
        "telemetry-destinations-2026-08-11",
        "webhooks-2026-10-07",
    }
)
"""Betas of other parts of the vendor's API, which no generation call uses."""


@dataclass(frozen=True)
class Lists:
    format: str
    body: Any
    carried: Collection[str]
    harmless: Collection[str]
    refused: Collection[str] = ()


LISTS = [
    Lists(
        "chat",
        completion_create_params.CompletionCreateParamsStreaming,
        chat_schema.ChatRequest.__struct_encode_fields__,
        chat_fields.HARMLESS_MEMBERS,
    ),
    Lists(
        "responses",
        response_create_params.ResponseCreateParamsStreaming,
        responses_schema.ResponsesRequest.__struct_encode_fields__,
        responses_fields.HARMLESS_MEMBERS,
    ),
    Lists(
        "messages",
        message_create_params.MessageCreateParamsStreaming,
        messages_schema.MessagesRequest.__struct_encode_fields__,
        messages_fields.HARMLESS_MEMBERS,
        messages_fields.REFUSED_FIELDS,
    ),
]


@pytest.mark.parametrize("lists", LISTS, ids=lambda lists: lists.format)
def test_every_field_of_the_sdk_is_on_one_list(lists: Lists) -> None:
    known = [*lists.carried, *lists.harmless, *lists.refused]
    assert set(typing_extensions.get_type_hints(lists.body)) <= set(known)
    assert len(known) == len(set(known))


def test_every_beta_of_the_sdk_is_on_the_list() -> None:
    text, betas = get_args(anthropic_beta_param.AnthropicBetaParam)
    assert text is str
    assert set(get_args(betas)) == BETA_FEATURES.keys() | BESIDE_GENERATION


def test_a_beta_requires_nothing_beyond_the_listed_fields() -> None:
    known = {*LISTS[2].carried, *LISTS[2].harmless, *LISTS[2].refused}
    assert {field for field in BETA_FEATURES.values() if field} <= known


def roles(union: Any) -> set[str]:
    hints = [typing_extensions.get_type_hints(member)["role"] for member in get_args(union)]
    return {role for hint in hints for role in get_args(hint)}


def test_every_role_of_the_sdks_is_carried() -> None:
    assert roles(chat_completion_message_param.ChatCompletionMessageParam) <= chat_content.MESSAGE_ROLES.keys()
    assert roles(beta_message_param.BetaMessageParam) <= messages_content.MESSAGE_ROLES.keys()
