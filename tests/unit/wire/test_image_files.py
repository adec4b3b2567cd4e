"""Headers of image files: type and size, and images that are refused before a pixel is decoded."""

import struct
import zlib
from dataclasses import dataclass
from io import BytesIO
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import sniff
from umg_grpc.wire.core.image_file_headers import MAX_PIXELS, ImageHeader, check_image, read_header, sniff_image

MODES = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "JPEG": ("L", "RGB", "CMYK"),
    "GIF": ("1", "L", "P", "RGB", "RGBA"),
    "WEBP": ("RGB", "RGBA", "L"),
}
FAST: dict[str, dict[str, object]] = {"PNG": {"compress_level": 1}, "WEBP": {"method": 0}}
"""Options that shorten the search for a small file."""
KINDS = [(kind, mode) for kind, modes in MODES.items() for mode in modes]


def encoded(kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 30), **options: object) -> bytes:
    file = BytesIO()
    Image.new(mode, size).save(file, kind, **options)
    return file.getvalue()


def png_header(width: int, height: int) -> bytes:
    """Return a PNG file of some dozens of bytes whose header states the size."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"")),
        (b"IEND", b""),
    ]
    framed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def refused(data: bytes, field: str = "image", **options: int) -> UmgError:
    with pytest.raises(UmgError) as caught:
        check_image(data, field, **options)
    assert (caught.value.reason, caught.value.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, field)
    return caught.value


@pytest.mark.parametrize(("kind", "mode"), KINDS)
@given(width=st.integers(1, 700), height=st.integers(1, 700))
def test_the_size_of_a_real_file_is_read_in_every_mode(kind: str, mode: str, width: int, height: int) -> None:
    header = read_header(encoded(kind, mode, (width, height), **FAST.get(kind, {})), "image")
    assert header == ImageHeader(f"image/{kind.lower()}", width, height)


@dataclass(frozen=True)
class Variant:
    id: str
    kind: str
    options: dict[str, object]
    mode: str = "RGB"


FRAMES = [Image.new("RGB", (40, 30), color) for color in ("red", "green")]
VARIANTS = [
    Variant(id="a progressive JPEG", kind="JPEG", options={"progressive": True}),
    Variant(id="a JPEG with a profile and a comment", kind="JPEG", options={"icc_profile": b"p" * 200_000, "comment": b"c" * 900}),
    Variant(id="a lossless WebP", kind="WEBP", options={"lossless": True}),
    Variant(id="a WebP with metadata", kind="WEBP", options={"icc_profile": b"p" * 1000, "exif": b"Exif\0\0"}),
    Variant(id="an animated WebP", kind="WEBP", options={"save_all": True, "append_images": FRAMES}),
    Variant(id="an animated PNG", kind="PNG", options={"save_all": True, "append_images": FRAMES}),
    Variant(id="an animated GIF", kind="GIF", options={"save_all": True, "append_images": FRAMES, "loop": 0}),
    Variant(id="a GIF with a comment", kind="GIF", options={"comment": b"c" * 2000}),
    Variant(id="an interlaced GIF", kind="GIF", options={"interlace": True}),
]  # fmt: skip


@pytest.mark.parametrize("case", VARIANTS, ids=lambda case: case.id)
def test_the_size_is_read_behind_other_blocks(case: Variant) -> None:
    header = read_header(encoded(case.kind, case.mode, **case.options), "image")
    assert (header.width, header.height) == (40, 30)


@pytest.mark.parametrize("kind", MODES)
def test_a_truncated_file_is_refused_or_has_its_size(kind: str) -> None:
    """Every length of the file: no header is read beyond the end of the file."""
    data = encoded(kind, size=(9, 7))
    shortest = next(length for length in range(len(data) + 1) if not _is_refused(data[:length]))
    assert shortest > 20
    for length in range(shortest, len(data)):
        header = check_image(data[:length], "image")
        assert (header.width, header.height) == (9, 7)


def _is_refused(data: bytes) -> bool:
    try:
        check_image(data, "image")
    except UmgError:
        return True
    return False


@given(
    data=st.sampled_from([encoded(kind, mode) for kind, mode in KINDS]),
    edits=st.lists(st.tuples(st.integers(0, 120), st.integers(0, 255)), max_size=8),
    length=st.integers(0, 2000),
)
def test_a_damaged_header_is_refused_with_its_field_or_read(
    data: bytes, edits: list[tuple[int, int]], length: int
) -> None:
    damaged = bytearray(data)
    for place, value in edits:
        damaged[place % len(damaged)] = value
    try:
        header = check_image(bytes(damaged[:length]), "images[3]")
    except UmgError as error:
        assert error.metadata["field"] == "images[3]"  # noqa: PT017 - either outcome is valid
    else:
        assert 1 <= header.pixels <= MAX_PIXELS


@given(
    st.binary(max_size=300),
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8", b""]),
)
def test_any_bytes_are_refused_with_their_field_or_read(data: bytes, signature: bytes) -> None:
    try:
        read_header(signature + data, "image")
    except UmgError as error:
        assert error.metadata["field"] == "image"  # noqa: PT017 - either outcome is valid


def test_a_tiny_file_of_billions_of_pixels_is_refused() -> None:
    bomb = png_header(60_000, 60_000)
    assert len(bomb) < 100
    error = refused(bomb, "images[0]")
    assert "60000 x 60000 pixels" in error.message
    assert str(MAX_PIXELS) in error.message


def test_a_gif_whose_frame_exceeds_its_screen_is_measured_by_the_frame() -> None:
    data = bytearray(encoded("GIF", "P", (8, 8)))
    frame = data.index(b"\x2c", 13 + 3 * 2 ** (1 + (data[10] & 7)))
    data[frame + 5 : frame + 9] = struct.pack("<HH", 60_000, 60_000)
    assert "60000 x 60000" in refused(bytes(data)).message


def test_a_jpeg_with_two_frame_headers_is_refused() -> None:
    data = encoded("JPEG")
    start = data.index(b"\xff\xc0")
    length = 2 + struct.unpack(">H", data[start + 2 : start + 4])[0]
    frame = data[start : start + length]
    large = frame[:5] + struct.pack(">HH", 60_000, 60_000) + frame[9:]
    refused(data[:start] + large + data[start:])
    refused(data[: start + length] + large + data[start + length :])


@pytest.mark.parametrize(
    ("size", "accepted"), [((8192, 8192), True), ((8193, 8192), False), ((65_000, 1000), True), ((68_000, 1000), False)]
)
def test_the_limit_counts_pixels(size: tuple[int, int], accepted: bool) -> None:
    assert _is_refused(png_header(*size)) is not accepted


def test_the_limit_can_be_lowered() -> None:
    assert check_image(png_header(10, 10), "image", max_pixels=100).pixels == 100
    refused(png_header(10, 11), max_pixels=100)


@pytest.mark.parametrize("size", [(0, 5), (5, 0)])
def test_an_empty_image_is_refused(size: tuple[int, int]) -> None:
    assert "empty" in refused(png_header(*size)).message


OTHERS = [
    (encoded("BMP"), "image/bmp"),
    (encoded("TIFF"), "image/tiff"),
    (encoded("AVIF"), "image/avif"),
    (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic"),
    (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "image/heic"),
]


@pytest.mark.parametrize(("data", "mime"), OTHERS, ids=lambda value: value if isinstance(value, str) else "")
def test_other_image_types_are_refused_by_their_names(data: bytes, mime: str) -> None:
    assert sniff_image(data) == mime
    error = refused(data)
    assert mime in error.message
    assert "PNG, JPEG, GIF or WebP" in error.message


@pytest.mark.parametrize(
    "data", [b"", b"not an image", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b"RIFF0000WAVEfmt "]
)
def test_a_file_that_is_no_image_is_refused(data: bytes) -> None:
    assert sniff_image(data) == ""
    assert "not an image" in refused(data).message


@given(st.binary(max_size=40))
def test_media_have_the_type_that_images_have(data: bytes) -> None:
    assert not sniff_image(data) or sniff(data) == sniff_image(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8" + b"\xff\xe0\0\2" * 5_000_000,
        b"\xff\xd8" + b"\xff" * 20_000_000,
        b"GIF89a" + bytes(7) + b"\x21\xfe" + b"\1a" * 10_000_000,
        b"GIF89a" + bytes(7) + b"\x21\xfe\0" * 6_000_000,
    ],
    ids=["JPEG segments", "JPEG fill bytes", "GIF blocks", "GIF extensions"],
)
def test_a_header_of_millions_of_blocks_takes_no_time(data: bytes) -> None:
    begun = thread_time()
    refused(data)
    assert thread_time() - begun < 0.5
