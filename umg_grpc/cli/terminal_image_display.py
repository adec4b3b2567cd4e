"""Display of images in terminals that support it, by the protocol of kitty or that of iTerm2."""

import base64
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO

Encoder = Callable[[bytes, int], str]
"""Function that returns the text which shows a picture with a width in columns."""

CHUNK_CHARACTERS = 4096
"""Most base64 of one command of kitty's protocol."""
MAX_COLUMNS = 60
KITTY_PROGRAMS = frozenset({"ghostty"})
ITERM_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "vscode"})
PNG_START = b"\x89PNG"


def encoder_of(environment: Mapping[str, str]) -> Encoder | None:
    """Return the function that encodes images as escape sequences for the environment's terminal. None if the terminal
    is not known to show images, or if a multiplexer (tmux, screen) runs in it, which passes no images on.
    """
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if "TMUX" in environment or term.startswith("screen"):
        return None
    if "KITTY_WINDOW_ID" in environment or term in ("xterm-kitty", "xterm-ghostty") or program in KITTY_PROGRAMS:
        return kitty
    if program in ITERM_PROGRAMS or environment.get("LC_TERMINAL") == "iTerm2":
        return iterm
    return None


def kitty(picture: bytes, columns: int) -> str:
    """Return kitty's escape sequences for an image `columns` wide. Other formats are converted to PNG."""
    return "".join(_kitty_commands(_as_png(picture), columns)) + "\n"


def iterm(picture: bytes, columns: int) -> str:
    """Return the escape sequence of iTerm2's protocol for an image, which is `columns` wide."""
    encoded = base64.b64encode(picture).decode()
    return f"\x1b]1337;File=inline=1;size={len(picture)};width={columns};preserveAspectRatio=1:{encoded}\a\n"


def _kitty_commands(picture: bytes, columns: int) -> Iterator[str]:
    encoded = base64.b64encode(picture).decode()
    options = f"a=T,f=100,c={columns},"
    for start in range(0, len(encoded), CHUNK_CHARACTERS):
        more = int(start + CHUNK_CHARACTERS < len(encoded))
        yield f"\x1b_G{options}m={more};{encoded[start : start + CHUNK_CHARACTERS]}\x1b\\"
        options = ""


def _as_png(picture: bytes) -> bytes:
    if picture.startswith(PNG_START):
        return picture
    from PIL import Image  # takes 5 MB, and is rarely needed

    file = BytesIO()
    with Image.open(BytesIO(picture)) as opened:
        opened.save(file, "PNG")
    return file.getvalue()
