"""Table of the embedding models whose vectors may be cut."""

import re

import pytest

from umg_grpc.knowledge.matryoshka_models import MATRYOSHKA_MODELS, shortest_vector

KNOWN = {
    "text-embedding-3-small": 1,
    "openai/text-embedding-3-large": 1,
    "models/gemini-embedding-001": 128,
    "text-embedding-qwen3-embedding-8b": 32,  # LM Studio's name
    "Qwen/Qwen3-Embedding-0.6B": 32,
    "nomic-embed-text:latest": 64,
    "nomic-ai/nomic-embed-text-v1.5": 64,
    "embeddinggemma-300m-GGUF": 128,
    "snowflake-arctic-embed2": 128,
    "voyage-3.5-lite": 256,
    "embed-v4.0": 256,
    "text-embedding-ada-002": None,
    "nomic-embed-text-v1": None,
    "voyage-3": None,
    "embed-english-v3.0": None,
    "bge-m3": None,
    "my-text-embedding-3-smaller": None,
}


@pytest.mark.parametrize("model", KNOWN)
def test_the_models_are_known_in_the_spellings_of_providers(model: str) -> None:
    assert shortest_vector(model) == KNOWN[model]


def test_each_row_has_a_source_and_a_date() -> None:
    assert all(row.source and re.fullmatch(r"20\d\d-\d\d-\d\d", row.as_of) for row in MATRYOSHKA_MODELS)
