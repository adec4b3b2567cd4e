"""Tokenizer vocabularies that can be selected, and the rules by which the tokens of each model family are counted."""

from dataclasses import dataclass

TOKENIZER_ROWS = (
    *("o200k_base", "cl100k_base"),
    *("llama3", "qwen3", "glm4", "kimi_k2", "deepseek_v3", "gemma3", "mistral_v3"),
    *("mistral_v2", "llama2", "smollm2"),
)
"""Allowed values of `tokenizer` in the config of a model."""

SENTENCE_PIECE = frozenset({"gemma3", "mistral_v2", "llama2"})
"""Vocabularies of the SentencePiece kind, whose encoding takes about twelve times longer than that of the others."""


@dataclass(frozen=True)
class CountingRules:
    """Rules for counting the tokens of requests and responses of a model."""

    vocabulary: str
    percent: int = 100
    """Factor for the tokens of texts, in percent, for models whose own vocabulary is not published."""
    tool_preamble: int = 0
    """Tokens that the provider adds to a request with tools, once."""
    message_tokens: int = 4
    """Tokens added for the role and the separators of each message."""
    response_tokens: int = 3
    """Tokens added to each request for the markup with which the response begins."""


DEFAULT_RULES = CountingRules("o200k_base")
FAMILY_TOKENIZERS = {
    "famG": CountingRules("gemma3"),
    "famO": DEFAULT_RULES,
    "famC": CountingRules("o200k_base", percent=120, tool_preamble=346),
    "famQ": CountingRules("qwen3"),
    "famR": CountingRules("deepseek_v3"),
    "famX": DEFAULT_RULES,
}
BY_TOKENIZER = {"smollm2": CountingRules("smollm2", message_tokens=5, response_tokens=4)}


def counting_rules(family: str, tokenizer: str | None) -> CountingRules:
    """Return the rules of `tokenizer` or, if it is None, of a model family; an unknown family has those of `famO`."""
    if tokenizer is not None:
        return BY_TOKENIZER.get(tokenizer, CountingRules(tokenizer))
    return FAMILY_TOKENIZERS.get(family, DEFAULT_RULES)
