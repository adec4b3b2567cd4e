"""Names of the vocabularies and the counting rules of models. `vocabulary_cache` loads the vocabularies themselves."""

from dataclasses import dataclass

TOKENIZERS = (
    *("o200k_base", "cl100k_base"),
    *("llama3", "qwen3", "glm4", "kimi_k2", "deepseek_v3", "gemma3", "mistral_v3"),
    *("mistral_v2", "llama2", "smollm2"),
)
"""Allowed values of `tokenizer` in the config of a model."""

SENTENCE_PIECE = frozenset({"gemma3", "mistral_v2", "llama2"})
"""SentencePiece vocabularies, which are a dozen times slower than the others."""


@dataclass(frozen=True)
class CountingRules:
    """Rules for counting the tokens of a model."""

    vocabulary: str
    percent: int = 100
    """Scale of text counts in percent, for models whose own vocabulary is not published."""
    tool_preamble: int = 0
    """Tokens that the provider adds to a request with tools."""
    message_tokens: int = 4
    """Tokens of the role and the marks of a turn."""
    answer_tokens: int = 3
    """Tokens of the marks that begin the answer."""


DEFAULT = CountingRules("o200k_base")
FAMILIES = {
    "famG": CountingRules("gemma3"),
    "famO": DEFAULT,
    "famC": CountingRules("o200k_base", percent=120, tool_preamble=346),
    "famQ": CountingRules("qwen3"),
    "famR": CountingRules("deepseek_v3"),
    "famX": DEFAULT,
}
BY_TOKENIZER = {"smollm2": CountingRules("smollm2", message_tokens=5, answer_tokens=4)}


def counting_rules(family: str, tokenizer: str | None) -> CountingRules:
    """Return the rules of the configured tokenizer, else of the family; an unknown family counts as famO."""
    if tokenizer is not None:
        return BY_TOKENIZER.get(tokenizer, CountingRules(tokenizer))
    return FAMILIES.get(family, DEFAULT)
