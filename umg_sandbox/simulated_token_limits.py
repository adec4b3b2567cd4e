"""Token limits of the simulated text models, for prompts and responses."""

from umg_grpc.knowledge.model_catalogue import describe

CONTEXT_TOKENS, OUTPUT_TOKENS = 1_000_000, 65_536
"""Defaults for a model id that is only in the configuration, not in the catalogue."""


def context_tokens(model: str) -> int:
    """Return the maximum number of tokens of a prompt for a model."""
    known = describe(model)
    return (known.input_token_limit if known is not None else 0) or CONTEXT_TOKENS


def max_output_tokens(model: str) -> int:
    """Return the maximum number of tokens of a response for a model, if the request sets no limit."""
    known = describe(model)
    return (known.output_token_limit if known is not None else 0) or OUTPUT_TOKENS
