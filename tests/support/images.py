"""Small image files."""

from io import BytesIO

from PIL import Image


def picture(kind: str, size: tuple[int, int] = (8, 6), color: tuple[int, int, int] = (200, 30, 30)) -> bytes:
    """Return an image file of one colour. `kind` is a format of Pillow."""
    file = BytesIO()
    Image.new("RGB", size, color).save(file, kind)
    return file.getvalue()


PNG, JPEG, GIF, WEBP = (picture(kind) for kind in ("PNG", "JPEG", "GIF", "WEBP"))


def mask_of(image: bytes) -> bytes:
    """Return a mask for an image, by which its left half is redrawn."""
    with Image.open(BytesIO(image)) as opened:
        width, height = opened.size
    mask = Image.new("RGBA", (width, height), (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), (0, 0, width // 2, height))
    file = BytesIO()
    mask.save(file, "PNG")
    return file.getvalue()
