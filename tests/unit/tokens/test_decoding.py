"""Decoding of token ids to their text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.tokens import TOKENIZER_ROWS
from umg_grpc.tokens.token_decoding import EMBEDDING_TOKENIZER, decode
from umg_grpc.tokens.vocabulary_cache import load
from umg_grpc.v1 import pb

CORPUS = Path(__file__).parent / "corpus"
TEXTS = [path.read_text(encoding="utf-8") for path in sorted(CORPUS.iterdir())]
HARD = "  Hello wörld,\t中文 😀👩‍👩‍👧!\r\n\n\n1234567890 <|endoftext|> <s> é\u2028 end  "


@pytest.mark.parametrize("tokenizer", TOKENIZER_ROWS)
def test_a_text_is_decoded_from_its_tokens(tokenizer: str) -> None:
    vocabulary = load(tokenizer)
    for text in (*TEXTS, HARD, "a"):
        assert decode(vocabulary.encode_ordinary(text), tokenizer) == text


@given(st.text(min_size=1))
def test_any_text_is_decoded_from_its_tokens(text: str) -> None:
    assert decode(load(EMBEDDING_TOKENIZER).encode_ordinary(text), None) == text


def test_without_a_tokenizer_the_ids_are_those_of_the_vendor_of_the_format() -> None:
    assert EMBEDDING_TOKENIZER == "cl100k_base"
    assert decode([9906, 11, 1268, 527, 499, 30], None) == "Hello, how are you?"
    assert decode(pb.EmbeddingTokens(ids=[9906, 1917]).ids, None) == "Hello world"


@pytest.mark.parametrize("tokenizer", TOKENIZER_ROWS)
def test_half_a_character_at_either_end_becomes_the_sign_for_it(tokenizer: str) -> None:
    """Cut a text inside a character, as clients do that split a long text by a number of tokens."""
    ids = load(tokenizer).encode_ordinary("a𓀀𓀀𓀀z")  # a character of several tokens in every vocabulary
    assert len(ids) > 5
    for cut in range(1, len(ids)):
        front, back = decode(ids[:cut], tokenizer), decode(ids[cut:], tokenizer)
        assert set(front + back) <= set("a𓀀z\ufffd ")
        whole = front.count("𓀀") + back.count("𓀀")
        assert whole == (3 if "\ufffd" not in front + back else 2)


@pytest.mark.parametrize("tokenizer", TOKENIZER_ROWS)
def test_an_id_that_there_is_not_is_named_by_its_position(tokenizer: str) -> None:
    known = load(tokenizer).encode_ordinary("Hello")[:1]
    for unknown in (10_000_000, 2**32 - 1):
        with pytest.raises(ValueError, match=rf"^{unknown}, at position 1, is no token of {tokenizer}$"):
            decode([*known, unknown, *known], tokenizer)


def test_an_unknown_id_is_found_behind_half_a_character() -> None:
    half = load(EMBEDDING_TOKENIZER).encode_ordinary("😀")[:1]
    with pytest.raises(ValueError, match=r"^99999999, at position 1, is no token of cl100k_base$"):
        decode([*half, 99_999_999], None)


@pytest.mark.parametrize(
    ("tokenizer", "mark"), [("smollm2", 0), ("llama2", 1), ("mistral_v2", 1), ("gemma3", 2), ("qwen3", 151643)]
)
def test_marks_without_text_are_left_out(tokenizer: str, mark: int) -> None:
    text = load(tokenizer).encode_ordinary("Hello")
    assert decode([*text, mark], tokenizer) == "Hello"
    with pytest.raises(ValueError, match=r"^they stand for no text$"):
        decode([mark, mark], tokenizer)
