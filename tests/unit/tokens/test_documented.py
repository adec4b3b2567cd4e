"""Figures of docs/tokens.md: they equal the results for the corpus beside this file."""

from pathlib import Path

import pytest

from umg_grpc.tokens import TOKENIZER_ROWS, TokenCounter
from umg_grpc.tokens.gguf import hugging_face_tokenizer, weights
from umg_grpc.tokens.vocabularies import FAMILY_TOKENIZERS
from umg_grpc.tokens.vocabulary_cache import SMOLLM2_PACKAGE

KINDS = ("english", "german", "chinese", "code", "json")
CORPUS = {kind: (Path(__file__).parent / "corpus" / f"{kind}.txt").read_text(encoding="utf-8") for kind in KINDS}
DOCUMENT = (Path(__file__).parents[3] / "docs" / "tokens.md").read_text(encoding="utf-8")
LARGE = ("o200k_base", "cl100k_base", "llama3", "qwen3", "glm4", "kimi_k2", "deepseek_v3", "gemma3", "mistral_v3")
"""Vocabularies of 100,000 tokens and more, as current models have."""

needs_weights = pytest.mark.skipif(weights(SMOLLM2_PACKAGE) is None, reason="the local model is not installed")


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def tokens(tokenizer: str) -> dict[str, int]:
    counter = TokenCounter(tokenizer=tokenizer)
    return {kind: counter.count_text(text) for kind, text in CORPUS.items()}


@pytest.mark.parametrize(
    "tokenizer", [pytest.param(n, marks=needs_weights if n == "smollm2" else ()) for n in TOKENIZER_ROWS]
)
def test_the_document_has_the_counts_of_the_corpus_by_each_vocabulary(tokenizer: str) -> None:
    first, counted = tokens(TOKENIZER_ROWS[0]), tokens(tokenizer)
    expected = row(f"`{tokenizer}`", *(f"{counted[kind] / first[kind]:.2f}" for kind in KINDS))
    assert expected in DOCUMENT


@pytest.mark.parametrize("family", ["famC", "famX"])
def test_the_document_has_how_far_other_vocabularies_are_from_our_count_for_an_unpublished_one(family: str) -> None:
    counter = TokenCounter(family)
    cells = []
    for text in CORPUS.values():
        shares = [TokenCounter(tokenizer=name).count_text(text) / counter.count_text(text) - 1 for name in LARGE]
        cells.append(f"{round(100 * min(shares)):+d} to {round(100 * max(shares)):+d}")
    assert row(family, *cells) in DOCUMENT


@pytest.mark.parametrize("family", FAMILY_TOKENIZERS)
def test_the_document_has_how_every_family_is_counted(family: str) -> None:
    counting = FAMILY_TOKENIZERS[family]
    how = f"`{counting.vocabulary}`"
    if counting.percent != 100:
        how += f", {counting.percent} % of its count"
    if counting.tool_preamble:
        how += f", and {counting.tool_preamble} more when there are tools"
    assert f"| {family} | {how} |" in DOCUMENT


@needs_weights
def test_only_a_vocabulary_of_the_local_model_is_read_from_weights(tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF" + bytes(4 + 8 + 8))
    with pytest.raises(ValueError, match="not a vocabulary of SmolLM2"):
        hugging_face_tokenizer(other)
    other.write_bytes(b"PK")
    with pytest.raises(ValueError, match="not a GGUF file"):
        hugging_face_tokenizer(other)
    assert weights("no_such_package") is None
