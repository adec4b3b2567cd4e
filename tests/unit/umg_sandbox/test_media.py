"""Images and documents in requests, and generated images."""

import struct
import warnings
import zlib
from dataclasses import dataclass
from io import BytesIO

import pytest
from PIL import Image

from tests.unit.umg_sandbox.sandbox_calls import assistant, called, count, generate, make_request, refused, stream, user
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type /Pages/Kids[3 0 R 4 0 R]/Count 2>>endobj\n"
    b"3 0 obj<</Type /Page/Parent 2 0 R>>endobj 4 0 obj<</Type/Page/Parent 2 0 R>>endobj\n%%EOF"
)


def picture(kind: str, size: tuple[int, int] = (64, 48)) -> bytes:
    file = BytesIO()
    Image.new("RGB", size, "red").save(file, kind)
    return file.getvalue()


def image(data: bytes, mime: str = "") -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=data, mime_type=mime))


def media(kind: "pb.MediaKind.ValueType", **fields: object) -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=kind, **fields))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"])
def test_the_answer_contains_type_and_size_of_an_image(kind: str) -> None:
    answer = generate(make_request(user("What is it?", image(picture(kind)))))
    assert f"Image 1: image/{kind.lower()}, 64 x 48 pixels." in answer.text
    assert answer.usage.image_input_tokens == 1000
    assert answer.usage.input_tokens == count("What is it?") + 1000


def test_the_type_of_an_image_is_detected_from_its_bytes() -> None:
    assert "image/jpeg, 8 x 8 pixels" in generate(make_request(user(image(picture("JPEG", (8, 8)), "image/png")))).text


def test_the_type_of_an_image_without_a_readable_size_is_named() -> None:
    answer = generate(make_request(user(image(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"))))
    assert "Image 1: image/heic, whose size the sandbox cannot read." in answer.text


def test_images_are_found_in_messages_and_tool_results() -> None:
    returned = pb.ToolResult(call_id="call_1", parts=[image(picture("PNG", (3, 4)))])
    history = [user(image(picture("PNG", (1, 2)))), assistant(called("look")), user(pb.Part(tool_result=returned))]
    answer = generate(make_request(*history))
    assert "Image 1: image/png, 1 x 2 pixels." in answer.text
    assert "Image 2: image/png, 3 x 4 pixels." in answer.text
    assert answer.usage.image_input_tokens == 2000


def test_many_images_are_counted() -> None:
    answer = generate(make_request(user(*[image(picture("PNG"))] * 23)))
    assert "There are 3 more files." in answer.text
    assert answer.usage.image_input_tokens == 23_000


def test_an_address_is_not_fetched() -> None:
    answer = generate(make_request(user(media(pb.MEDIA_KIND_IMAGE, uri="https://images.test/a.png"))))
    assert "at https://images.test/a.png, which was not fetched" in answer.text
    assert answer.usage.image_input_tokens == 1000


def enormous() -> bytes:
    """Return the header of a picture that would take 40 GB."""
    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 6, 0, 0, 0)
    chunk = b"IHDR" + header
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk)) + b"\0\0\0\0IDAT"


def test_an_enormous_image_is_measured_and_never_decoded() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "image/png, 100000 x 100000 pixels" in generate(make_request(user(image(enormous())))).text


@pytest.mark.parametrize(
    "data", [b"not an image", picture("PNG")[:20], b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBPVP8 ", b"BM", b"II*\0"]
)
def test_a_broken_image_is_refused_by_its_path(data: bytes) -> None:
    error = refused(make_request("Hi", user("and", image(data))))
    assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, "messages[1].parts[1].media")


def test_a_broken_image_inside_a_result_is_refused_by_its_path() -> None:
    returned = pb.Part(tool_result=pb.ToolResult(parts=[image(b"?")]))
    error = refused(make_request("Hi", assistant(called("look")), user(returned)))
    assert error.metadata["field"] == "messages[2].parts[0].tool_result.parts[0].media"


DOCUMENT = pb.MEDIA_KIND_DOCUMENT


@dataclass(frozen=True)
class MediaCase:
    id: str
    part: pb.Part
    described: str
    tokens: int
    field: str = "document_input_tokens"


MEDIA_CASES = [
    MediaCase(id="text", part=media(DOCUMENT, data=b"Hello  big\nworld", mime_type="text/plain"), described="Document 1: text/plain, 16 bytes. It begins: Hello big world", tokens=0),
    MediaCase(id="a PDF", part=media(DOCUMENT, data=PDF), described=f"Document 1: application/pdf, {len(PDF)} bytes, 2 pages.", tokens=2000),
    MediaCase(id="a PDF without visible pages", part=media(DOCUMENT, data=b"%PDF-1.7", mime_type="application/pdf"), described="application/pdf, 8 bytes.", tokens=1000),
    MediaCase(id="a sheet", part=media(DOCUMENT, data=b"PK" * 1000, mime_type="application/x-sheet"), described="application/x-sheet, 2000 bytes.", tokens=3),
    MediaCase(id="an address", part=media(DOCUMENT, uri="https://a.test/b.pdf", mime_type="application/pdf"), described="Document 1: application/pdf, at https://a.test/b.pdf, which was not fetched", tokens=1000),
    MediaCase(id="sound", part=media(pb.MEDIA_KIND_AUDIO, data=b"RIFF0000WAVE", mime_type="audio/wav"), described="Audio 1: audio/wav, 12 bytes.", tokens=1, field="audio_input_tokens"),
    MediaCase(id="moving pictures", part=media(pb.MEDIA_KIND_VIDEO, data=b"0" * 5000, mime_type="video/mp4"), described="Video 1: video/mp4, 5000 bytes.", tokens=6, field="video_input_tokens"),
]  # fmt: skip


@pytest.mark.parametrize("case", MEDIA_CASES, ids=lambda case: case.id)
def test_the_answer_contains_type_and_size_of_other_media(case: MediaCase) -> None:
    answer = generate(make_request(user(case.part)))
    assert case.described in answer.text
    assert getattr(answer.usage, case.field) == case.tokens


def test_the_words_of_a_document_count_as_input_tokens() -> None:
    part = media(DOCUMENT, data=b"12345678", mime_type="text/plain")
    assert generate(make_request(user(part, "abcd"))).usage.input_tokens == 2 + 1


def test_a_file_of_a_provider_is_refused() -> None:
    error = refused(make_request(user(media(DOCUMENT, file_id="file-1"))))
    assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_UNTRANSLATABLE, "messages[0].parts[0].media")


@dataclass(frozen=True)
class ImageCase:
    id: str
    options: pb.ImageOutputOptions
    size: tuple[int, int]
    format: str = "PNG"


DRAWN = [
    ImageCase(id="by default", options=pb.ImageOutputOptions(), size=(1024, 1024)),
    ImageCase(id="wide", options=pb.ImageOutputOptions(aspect_ratio="16:9"), size=(1360, 765)),
    ImageCase(id="high", options=pb.ImageOutputOptions(aspect_ratio="9:16", image_size="2K"), size=(1539, 2736)),
    ImageCase(id="large", options=pb.ImageOutputOptions(image_size="4K"), size=(4096, 4096)),
    ImageCase(id="JPEG", options=pb.ImageOutputOptions(mime_type="image/jpeg"), size=(1024, 1024), format="JPEG"),
    ImageCase(id="WebP", options=pb.ImageOutputOptions(mime_type="image/webp"), size=(1024, 1024), format="WEBP"),
]


@pytest.mark.parametrize("case", DRAWN, ids=lambda case: case.id)
def test_an_image_has_the_requested_ratio_size_and_type(case: ImageCase) -> None:
    answer = generate(make_request("A red car", output_modalities=["image"], image_output=case.options))
    [part] = answer.parts
    assert part.media.mime_type == f"image/{case.format.lower()}"
    with Image.open(BytesIO(part.media.data)) as opened:
        opened.load()
        assert (opened.size, opened.format) == (case.size, case.format)
        assert len(opened.convert("RGB").getcolors(2**24) or []) > 1, "the image has more than one colour"
    assert answer.usage.image_output_tokens == answer.usage.output_tokens > 0


def test_an_image_follows_the_text_if_both_are_requested() -> None:
    request = make_request("A red car", output_modalities=["text", "image"])
    assert generate(request).kinds == ["text", "media"]
    assert stream(request).parts[1] == generate(request).parts[1]


def test_equal_prompts_make_equal_images_and_other_prompts_other_images() -> None:
    red, again, blue = (
        generate(make_request(described, output_modalities=["image"])).parts[0].media.data
        for described in ("red", "red", "blue")
    )
    assert red == again != blue


def reds(request: pb.GenerateRequest) -> float:
    [part] = generate(request).parts
    with Image.open(BytesIO(part.media.data)) as opened:
        pixels = opened.convert("RGB").getcolors(2**24) or []
    return sum(number for number, color in pixels if color == (255, 0, 0)) / sum(number for number, _ in pixels)


def test_an_image_shows_the_input_image_of_the_turn_or_of_the_turn_before() -> None:
    drawn: dict[str, object] = {"output_modalities": ["image"]}
    red = image(picture("PNG"))
    assert reds(make_request("Add a hat", **drawn)) == 0
    assert reds(make_request(user("Add a hat", red), **drawn)) > 0.4
    assert reds(make_request("A car", assistant(red), "Add a hat", **drawn)) > 0.4


def test_an_address_is_drawn_and_not_fetched() -> None:
    request = make_request(
        user("Add a hat", media(pb.MEDIA_KIND_IMAGE, uri="https://images.invalid/a.png")), output_modalities=["image"]
    )
    without = make_request("Add a hat", output_modalities=["image"])
    assert generate(request).parts[0].media.data != generate(without).parts[0].media.data


def test_candidates_and_seeds_have_images_of_their_own() -> None:
    request = make_request("A car", output_modalities=["image"], candidate_count=2, seed=1)
    other = make_request("A car", output_modalities=["image"], seed=2)
    candidates = [*generate(request).response.candidates, *generate(other).response.candidates]
    assert len({candidate.message.parts[0].media.data for candidate in candidates}) == 3


def test_an_input_image_that_cannot_be_decoded_is_refused_by_its_path() -> None:
    noise = BytesIO()
    Image.effect_noise((64, 64), 50).save(noise, "PNG")
    part = image(noise.getvalue()[:500])
    assert "64 x 64 pixels" in generate(make_request(user("and", part))).text
    with pytest.raises(UmgError) as caught:
        generate(make_request("Hi", user("and", part), output_modalities=["image"]))
    error = caught.value
    assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, "messages[1].parts[1].media")


def test_an_image_that_exceeds_the_token_limit_is_not_made() -> None:
    answer = generate(make_request("A red car", output_modalities=["image"], max_output_tokens=100))
    assert (answer.parts, answer.finish) == ([], "LENGTH")


@pytest.mark.parametrize(
    ("field", "value"),
    [("aspect_ratio", "wide"), ("aspect_ratio", "0:1"), ("aspect_ratio", "7:9"), ("image_size", "9K"), ("image_size", "big"), ("mime_type", "image/gif")],
)  # fmt: skip
def test_an_image_that_cannot_be_made_is_refused(field: str, value: str) -> None:
    request = make_request("A car", output_modalities=["image"], image_output=pb.ImageOutputOptions(**{field: value}))
    error = refused(request)
    assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, f"image_output.{field}")


def test_a_text_model_of_the_documents_makes_no_images() -> None:
    for modalities in (["image"], ["text", "image"]):
        error = refused(make_request("A car", output_modalities=modalities), "famG-2.5-flash")
        assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_UNSUPPORTED_FIELD, "output_modalities")
    assert generate(make_request("A car", output_modalities=["image"]), "another-model").kinds == ["media"]
