"""Which vocabulary counts for which model. Pure: the names alone; `loading` has what they stand for."""

from dataclasses import dataclass

TOKENIZERS = (
    *("o200k_base", "cl100k_base"),
    *("llama3", "qwen3", "glm4", "kimi_k2", "deepseek_v3", "gemma3", "mistral_v3"),
    *("mistral_v2", "llama2", "smollm2"),
)
"""What `tokenizer` of a model's entry in the config may be."""

SENTENCE_PIECE = frozenset({"gemma3", "mistral_v2", "llama2"})
"""Those that are a dozen times slower than the others."""


@dataclass(frozen=True)
class Counting:
    """How the tokens of a model are counted."""

    vocabulary: str
    percent: int = 100
    """What a count of texts by the vocabulary is scaled to, for models whose own vocabulary is not published."""
    tool_preamble: int = 0
    """Tokens that the provider adds to a request which has tools."""
    message_tokens: int = 4
    """A turn's role and its marks."""
    answer_tokens: int = 3
    """The marks that open the answer."""


DEFAULT = Counting("o200k_base")
FAMILIES = {
    "famG": Counting("gemma3"),
    "famO": DEFAULT,
    "famC": Counting("o200k_base", percent=120, tool_preamble=346),
    "famQ": Counting("qwen3"),
    "famR": Counting("deepseek_v3"),
    "famX": DEFAULT,
}
BY_TOKENIZER = {"smollm2": Counting("smollm2", message_tokens=5, answer_tokens=4)}


def counting_of(family: str, tokenizer: str | None) -> Counting:
    """By the tokenizer that the operator chose, else by the family; a family without a row is counted as famO."""
    if tokenizer is not None:
        return BY_TOKENIZER.get(tokenizer, Counting(tokenizer))
    return FAMILIES.get(family, DEFAULT)
