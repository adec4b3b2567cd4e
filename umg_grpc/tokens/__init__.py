"""Local token counting: no model call, no network. docs/tokens.md says how far off it may be."""

from umg_grpc.tokens.counter import TokenCounter
from umg_grpc.tokens.vocabularies import TOKENIZERS

__all__ = ["TOKENIZERS", "TokenCounter"]
