"""Characters cut in two between deltas."""

import msgspec
import pytest

from umg_grpc.wire.ragged import Mender, decode, placeheld


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
    ],
    ids=ascii,
)
def test_halves_are_put_together_again(documents: list[bytes], text: str) -> None:
    mender = Mender()
    mended = [mender.mend(msgspec.json.decode(placeheld(document), type=str)) for document in documents]
    assert "".join([*mended, mender.rest()]) == text


def test_a_whole_document_has_replacement_characters_for_its_halves() -> None:
    assert decode(msgspec.json.Decoder(), b'{"a":"\\ud83d","b":"\xf0\x9f","c":"\\ud83d\\ude00"}') == {
        "a": "\ufffd",
        "b": "\ufffd\ufffd",
        "c": "\U0001f600",
    }
