"""Vocabulary of a GGUF file (the weights of a local model) as the tokenizer.json that `splintr` reads.

Supports only the SmolLM2 family: byte-level BPE with the pre-tokenizer `smollm`. Layout: ggml, docs/gguf.md.
"""

import struct
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import msgspec

NUMBER_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING_TYPE, ARRAY_TYPE = 8, 9
CONTROL_TOKEN = 3

Value = str | float | list["Value"]


def weights(package: str) -> Path | None:
    """Return the path of the GGUF file (weights) in an installed package, without an import; None if there is none."""
    spec = find_spec(package)
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)


def hugging_face_tokenizer(file: Path) -> bytes:
    """Return the contents of a tokenizer.json with the vocabulary of a GGUF file. Reads about the first 2 MB of the
    file. Raise ValueError if it has no vocabulary of SmolLM2.
    """
    with file.open("rb") as stream:
        keys = _keys(stream)
    tokens, types = keys.get("tokenizer.ggml.tokens"), keys.get("tokenizer.ggml.token_type")
    if keys.get("tokenizer.ggml.pre") != "smollm" or not isinstance(tokens, list) or not isinstance(types, list):
        raise ValueError(f"{file}: not a vocabulary of SmolLM2")
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    added = [
        {"id": number, "content": token, **special}
        for number, (token, kind) in enumerate(zip(tokens, types, strict=True))
        if kind == CONTROL_TOKEN
    ]
    bytes_as_characters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    model = {
        "type": "BPE",
        "vocab": {str(token): number for number, token in enumerate(tokens)},
        "merges": keys.get("tokenizer.ggml.merges", []),
        "fuse_unk": False,
        "byte_fallback": False,
    }
    return msgspec.json.encode(
        {
            "version": "1.0",
            "added_tokens": added,
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, bytes_as_characters]},
            "post_processor": None,
            "decoder": bytes_as_characters,
            "model": model,
        }
    )


def _keys(stream: BinaryIO) -> dict[str, Value]:
    if stream.read(4) != b"GGUF":
        raise ValueError("not a GGUF file")
    _number(stream, "I")  # version
    _number(stream, "Q")  # number of tensors
    return {_string(stream): _value(stream, int(_number(stream, "I"))) for _ in range(int(_number(stream, "Q")))}


def _value(stream: BinaryIO, kind: int) -> Value:
    if kind == STRING_TYPE:
        return _string(stream)
    if kind == ARRAY_TYPE:
        element, count = int(_number(stream, "I")), int(_number(stream, "Q"))
        return [_value(stream, element) for _ in range(count)]
    return _number(stream, NUMBER_FORMATS[kind])


def _string(stream: BinaryIO) -> str:
    return stream.read(int(_number(stream, "Q"))).decode("utf-8")


def _number(stream: BinaryIO, code: str) -> float:
    format_ = "<" + code
    number: float = struct.unpack(format_, stream.read(struct.calcsize(format_)))[0]
    return number
