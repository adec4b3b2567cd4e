"""Characters cut in two between deltas."""

import msgspec
import pytest

from umg_grpc.wire.core.split_character_repair import SurrogateJoiner, decode, escape_halves, replace_halves


@pytest.mark.parametrize(
    ("documents", "text"),
    [
        ([rb'"a\ud83d"', rb'"\ude00b"'], "a\U0001f600b"),
        ([rb'"\ud83d"', rb'""', rb'"\ude00"'], "\U0001f600"),
        ([rb'"\uD83D\uDC80 \ud83d"', rb'"\udc80"'], "\U0001f480 \U0001f480"),
        ([rb'"\ud83d"', rb'"x"'], "\ufffdx"),
        ([rb'"\ude00"'], "\ufffd"),
        ([rb'"a\ud83d"'], "a\ufffd"),
        ([b'"a\xf0\x9f"', b'"\x98\x80b"'], "a\U0001f600b"),
        ([b'"\xf0"', b'"\x9f"', b'"\x98"', b'"\x80"'], "\U0001f600"),
        ([b'"\xc3"', b'"x"'], "\ufffdx"),
        ([rb'"\\ud83d"'], "\\ud83d"),
        (
            ['"\U00100000\U00100880"'.encode(), rb'"\ud83d\U00100401"'.replace(rb"\U00100401", "\U00100401".encode())],
            "\U00100000\U00100880\ufffd\U00100401",
        ),
        (['"\U001008ff'.encode() + b'\xf0\x9f"', b'"\x98\x80b"'], "\U001008ff\U0001f600b"),
    ],
    ids=ascii,
)
def test_halves_of_a_character_are_joined_again(documents: list[bytes], text: str) -> None:
    joiner = SurrogateJoiner()
    replace_halves = [joiner.join(msgspec.json.decode(escape_halves(document), type=str)) for document in documents]
    assert "".join([*replace_halves, joiner.rest()]) == text


def test_a_whole_document_has_replacement_characters_for_its_halves() -> None:
    assert decode(msgspec.json.Decoder(), b'{"a":"\\ud83d","b":"\xf0\x9f","c":"\\ud83d\\ude00"}') == {
        "a": "\ufffd",
        "b": "\ufffd\ufffd",
        "c": "\U0001f600",
    }


def test_characters_that_look_like_placeholders_are_kept() -> None:
    assert (
        replace_halves('{"a":"\U00100000\U00100480\U001008ff"}'.encode())
        == '{"a":"\U00100000\U00100480\U001008ff"}'.encode()
    )
