"""Sections of docs/fields.md on Cohere's formats: they have all members."""

import re
from pathlib import Path

import cohere
from cohere.v2.types import V2ChatResponse

from umg_grpc.wire.cohere import schema
from umg_grpc.wire.cohere_embeddings.schema import EmbedBody

PAGE = (Path(__file__).parents[2] / "docs" / "fields.md").read_text()
SECTION = PAGE[PAGE.index("\n## Cohere's chat\n") : PAGE.index("\n## Only in the source document\n")]
RESPONSES = "| Member of a response or an event |"
CHAT, EMBEDDINGS = SECTION.split("\n## Cohere's embeddings\n")


def named(text: str) -> set[str]:
    """Return the words of the first column."""
    cells = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return {part.rpartition(".")[2] for cell in cells for name in re.findall(r"`(.+?)`", cell) for part in [name]}


def test_the_page_has_the_members_of_a_request() -> None:
    members = {*schema.ChatRequest.__struct_fields__, *schema.ChatMessage.__struct_fields__} - {"role"}
    assert members <= named(CHAT.split(RESPONSES)[0])
    assert {*EmbedBody.__struct_fields__} <= named(EMBEDDINGS.split(RESPONSES)[0])


def test_the_page_has_the_members_of_a_response() -> None:
    members = {*V2ChatResponse.model_fields, *cohere.AssistantMessageResponse.model_fields}
    assert members - {"message", "role", "tool_plan"} <= named(CHAT.split(RESPONSES)[1])
    assert {*cohere.EmbedByTypeResponse.model_fields} <= named(EMBEDDINGS.split(RESPONSES)[1])
