"""Files of answers that stay in base64: cut out of bodies in any parts, and sent as they came."""

import base64
import json
from dataclasses import dataclass
from random import Random

import pytest

from tests.support.images import PNG
from umg_grpc.v1 import pb
from umg_grpc.wire.core.undecoded_base64_files import LONG_BYTES, NONCE_BYTES, CutBody, EncodedFiles
from umg_grpc.wire.images import IMAGES_FACE
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers import ark_images, images_protocol, native_images
from umg_grpc.wire.unary_format_interface import ClientShape

FILES = [PNG + Random(seed).randbytes(LONG_BYTES + seed) for seed in range(3)]
"""Files whose base64 ends without padding, with one and with two characters of it."""
ENCODED = [base64.b64encode(file).decode() for file in FILES]
NONCE = bytes(range(NONCE_BYTES))
ITEMS = [
    {"b64_json": ENCODED[0], "revised_prompt": 'a "red" \\ kite\n'},
    {"url": "https://example.com/a.png"},
    {"b64_json": ENCODED[1]},
    {"b64_json": base64.b64encode(PNG).decode()},
    {"b64_json": ENCODED[2]},
]
PARTS = [{"inlineData": {"mimeType": "image/png", "data": text}} for text in ENCODED]
ANSWERS: dict[str, tuple[ImageProtocol, object]] = {
    "images": (images_protocol.IMAGES_PROTOCOL, {"created": 1, "data": ITEMS}),
    "documented": (images_protocol.IMAGES_PROTOCOL, {"code": 200, "data": {"created": 1, "data": ITEMS}}),
    "ark": (ark_images.ARK_IMAGES, {"created": 1, "data": ITEMS}),
    "native": (native_images.NATIVE_IMAGES, {"candidates": [{"content": {"parts": PARTS}, "finishReason": "STOP"}]}),
}
REQUEST = pb.GenerateImageRequest(model="m", n=5)


def cut(body: bytes, size: int) -> tuple[EncodedFiles, CutBody]:
    """Return a body that was received in parts of `size` bytes."""
    files = EncodedFiles(NONCE)
    read = CutBody(files)
    for start in range(0, len(body), size):
        read.feed(body[start : start + size])
    return files, read


def without_data(response: pb.GenerateImageResponse) -> pb.GenerateImageResponse:
    for image in response.result.images:
        if image.HasField("data"):
            image.data = b""
    return response


@pytest.mark.parametrize("size", [997, LONG_BYTES - 1, 1 << 30], ids=["small", "large", "one"])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_decoded_and_sent_as_if_it_were_whole(name: str, size: int) -> None:
    protocol, answer = ANSWERS[name]
    body = json.dumps(answer).encode()
    files, read = cut(body, size)
    assert read.text is not None
    assert len(read.text) < 2000
    response, whole = (protocol.decode_response(each, REQUEST) for each in (read.text, body))
    assert files.describe(response)
    sent = b"".join(IMAGES_FACE.encode_pieces(response, REQUEST, ClientShape.SDK, files))
    assert sent == IMAGES_FACE.encode_response(whole, REQUEST, ClientShape.SDK)
    assert without_data(response) == without_data(whole)


@pytest.mark.parametrize("size", range(1, 9))
def test_the_cuts_between_parts_do_not_matter(size: int) -> None:
    """The parts that hold the beginnings and ends of strings are cut at every place."""
    head, tail = b'{"a":"b\\\\","data":[{"b64_json":"', b'","revised_prompt":"\\"c"}]}'
    body = head + ENCODED[1].encode() + tail
    files = EncodedFiles(NONCE)
    read = CutBody(files)
    long = range(len(head) + LONG_BYTES // 2, len(body) - len(tail) - 40)
    ends = [*range(size, long.start, size), *range(long.stop, len(body), size), len(body)]
    for start, end in zip([0, *ends], ends, strict=False):
        read.feed(body[start:end])
    assert read.text is not None
    [item] = json.loads(read.text)["data"]
    file = files.find(base64.b64decode(item["b64_json"]))
    assert file is not None
    assert b"".join(file.pieces()).decode() == ENCODED[1]
    assert (item["revised_prompt"], json.loads(read.text)["a"]) == ('"c', "b\\")


@dataclass(frozen=True)
class Whole:
    """Long string for which a body is decoded as a whole."""

    id: str
    text: str


FILE = ENCODED[1]
WHOLE = [
    Whole("a data URL", f"data:image/png;base64,{FILE}"),
    Whole("an escape", FILE[:90_000] + "\\/" + FILE[90_000:]),
    Whole("an escape at the beginning", "\\/" + FILE),
    Whole("the alphabet of URLs", FILE[:80_000] + "-_-_" + FILE[80_000:]),
    Whole("no padding", FILE.rstrip("=")),
    Whole("more after the padding", FILE + "AAAA"),
    Whole("padding in the middle", FILE[:80_000] + "AA==" + FILE[80_000:]),
    Whole("a text", "a lake " * LONG_BYTES),
    Whole("no image", base64.b64encode(bytes(LONG_BYTES)).decode()),
    Whole("a header that is not in the beginning", base64.b64encode(b"\xff\xd8" + b"\xff" * LONG_BYTES * 2).decode()),
]


@pytest.mark.parametrize("size", [50_000, 1 << 30], ids=["parts", "one"])
@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.id)
def test_a_body_with_any_other_long_string_is_decoded_as_a_whole(case: Whole, size: int) -> None:
    _, read = cut(b'{"data":[{"b64_json":"%b"},{"b64_json":"%b"}]}' % (FILE.encode(), case.text.encode()), size)
    assert read.text is None or len(read.text) > LONG_BYTES


def test_a_body_without_its_end_is_decoded_as_a_whole() -> None:
    assert cut(b'{"data":[{"b64_json":"' + FILE[:80_000].encode(), 50_000)[1].text is None


def test_a_file_in_another_place_than_an_image_is_noticed() -> None:
    files, read = cut(b'{"data":[{"b64_json":"%b","revised_prompt":"%b"}]}' % (FILE.encode(), FILE.encode()), 50_000)
    assert read.text is not None
    assert not files.describe(images_protocol.IMAGES_PROTOCOL.decode_response(read.text, REQUEST))


def test_data_that_are_a_file_refer_to_none() -> None:
    assert EncodedFiles(NONCE).find(PNG) is None
