"""How long the prompts and answers of the simulated text models may be."""

from umg_grpc.catalogue import describe

CONTEXT_TOKENS, OUTPUT_TOKENS = 1_000_000, 65_536
"""Of an id that only some config gives a simulated model."""


def context_tokens(model: str) -> int:
    """Most tokens of a prompt."""
    known = describe(model)
    return (known.input_token_limit if known is not None else 0) or CONTEXT_TOKENS


def max_output_tokens(model: str) -> int:
    """Most tokens of an answer that has no limit of its own."""
    known = describe(model)
    return (known.output_token_limit if known is not None else 0) or OUTPUT_TOKENS
