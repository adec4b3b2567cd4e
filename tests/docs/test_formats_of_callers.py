"""Sections of docs/fields.md on the formats that callers alone have: they have all members of the bodies, and of the
types of the vendors' clients.
"""

import re
from dataclasses import dataclass
from typing import Any

import cohere as cohere_sdk
import ollama as ollama_sdk
import pytest
from cohere.v2.types import V2ChatResponse
from msgspec import Struct

from tests.docs.tables import DOCS, quoted, section
from umg_grpc.wire.cohere import schema as cohere
from umg_grpc.wire.cohere_embeddings.schema import EmbedBody as CohereEmbedBody
from umg_grpc.wire.ollama import schema as ollama
from umg_grpc.wire.ollama_embeddings.schema import EmbedBody, EmbeddingsBody

PAGE = (DOCS / "fields.md").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Section:
    """Section of the page. The members `unnamed` of responses have no row of their own."""

    title: str
    bodies: tuple[type[Struct], ...]
    types: tuple[Any, ...]
    unnamed: frozenset[str] = frozenset()


SECTIONS = (
    Section(
        "Cohere's chat",
        (cohere.ChatRequest, cohere.ChatMessage),
        (V2ChatResponse, cohere_sdk.AssistantMessageResponse),
        frozenset({"message", "tool_plan"}),
    ),
    Section("Cohere's embeddings", (CohereEmbedBody,), (cohere_sdk.EmbedByTypeResponse,)),
    Section(
        "Ollama's API",
        (ollama.ChatBody, ollama.GenerateBody, ollama.Message, ollama.Options, EmbedBody, EmbeddingsBody),
        (ollama_sdk.ChatResponse, ollama_sdk.GenerateResponse, ollama_sdk.EmbedResponse, ollama_sdk.EmbeddingsResponse),
        frozenset({"completed", "total"}),  # two of models that only make images
    ),
)


def named(table: str) -> set[str]:
    cells = re.findall(r"^\| (.*?) \|", table, re.MULTILINE)
    return {name.rpartition(".")[2] for cell in cells for name in quoted(cell)}


@pytest.mark.parametrize("case", SECTIONS, ids=lambda case: case.title)
def test_the_page_has_the_members_of_requests_and_of_responses(case: Section) -> None:
    requests, responses = section(PAGE, case.title).split("| Member of a response or an event |")
    assert {name for each in case.bodies for name in each.__struct_fields__} - {"role"} <= named(requests)
    assert {name for each in case.types for name in each.model_fields} - {"role"} - case.unnamed <= named(responses)
