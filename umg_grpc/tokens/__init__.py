"""Local token counting without model calls or network. docs/tokens.md states its accuracy."""

from umg_grpc.tokens.token_counter import TokenCounter
from umg_grpc.tokens.vocabularies import TOKENIZER_ROWS

__all__ = ["TOKENIZER_ROWS", "TokenCounter"]
