"""Section of docs/fields.md on Ollama's API: it has all members of the formats, and of the types of the vendor's client."""

import re
from pathlib import Path

import ollama

from umg_grpc.wire.ollama import schema
from umg_grpc.wire.ollama_embeddings.schema import EmbedBody, EmbeddingsBody

PAGE = (Path(__file__).parents[2] / "docs" / "fields.md").read_text()
[SECTION] = re.findall(r"\n## Ollama's API\n(.*?)(?=\n## |\Z)", PAGE, re.DOTALL)
REQUEST, RESPONSE = SECTION.split("| Member of a response or an event |")
OF_IMAGE_MODELS = {"completed", "total"}
"""Members of responses of models that only make images, which this format does not call."""


def named(text: str) -> set[str]:
    """Return the words of the first column, without their parents."""
    cells = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return {name.rpartition(".")[2] for cell in cells for name in re.findall(r"`(.+?)`", cell)}


def test_the_page_has_the_members_of_a_request() -> None:
    structs = (schema.ChatBody, schema.GenerateBody, schema.Message, schema.Options, EmbedBody, EmbeddingsBody)
    assert {name for each in structs for name in each.__struct_fields__} - {"role"} <= named(REQUEST)


def test_the_page_has_the_members_of_a_response() -> None:
    types = (ollama.ChatResponse, ollama.GenerateResponse, ollama.EmbedResponse, ollama.EmbeddingsResponse)
    assert {name for each in types for name in each.model_fields} - OF_IMAGE_MODELS <= named(RESPONSE)
