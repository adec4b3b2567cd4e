"""Calls of models at Amazon Bedrock: their paths, and the header in which InvokeModel's response states the usage."""

from collections.abc import Mapping
from urllib.parse import quote

INPUT_TOKENS = "x-amzn-bedrock-input-token-count"
"""Header of a response with the tokens of the input (cohere 7.3.1, `map_token_counts`)."""


def model_path(model: str, action: str) -> str:
    """Return the path of a model's call (`action`), its id escaped but for colons (anthropic 2.14.0, lib/bedrock)."""
    return f"/model/{quote(model, safe=':')}/{action}"


def input_tokens(headers: Mapping[str, str]) -> int | None:
    """Return the number of input tokens in the headers of a response; None if they state none."""
    stated = headers.get(INPUT_TOKENS, "")
    return int(stated) if stated.isdecimal() and len(stated) < len("9" * 16) else None
