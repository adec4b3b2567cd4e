"""Opaque reasoning state on a face whose format did not make it: shown so that it comes back to us, and read again.

What is of the face's own format stands there as it is. Any other is shown as `umg.<format>.<data>`; on native, whose
clients decode the field, as the base64 of that text (reference, 6.4).
"""

import base64
import binascii
import re

from umg_grpc.v1 import pb

PREFIX = "umg."

NO_SIGNATURE = "skip_thought_signature_validator"
"""Signature of a call that native's model did not make; base64 as it stands. From the third generation on such a call
of the running turn is refused without one (reference, 6.4).
"""
# What callers of native send for it, as text or as base64 of that. None of it is state.
PLACEHOLDERS = frozenset({NO_SIGNATURE, "context_engineering_is_the_way_to_go"})
MAX_PLACEHOLDER = 64  # characters
FORMATS = ("chat", "responses", "messages", "native")

_SHOWN = re.compile(rf"umg\.({'|'.join(FORMATS)})\.(.+)", re.DOTALL)
_STANDARD = str.maketrans("-_", "+/")


def show(state: pb.ReasoningState, face_format: str) -> str:
    """The state as a caller of `face_format` is given it: the inverse of `read`, less the channel.

    Own state is wrapped as well where it could not come back as it is: when it looks like a wrapped one (the provider
    is a gateway such as this), or is no base64 on native.
    """
    own = state.format in ("", face_format)
    if face_format != "native":
        wrapped = not own or state.data.startswith(PREFIX)
        return f"{PREFIX}{state.format or face_format}.{state.data}" if wrapped else state.data
    if own and not (_decoded(state.data) or PREFIX).startswith(PREFIX):
        return state.data
    return base64.b64encode(f"{PREFIX}{state.format or face_format}.{state.data}".encode()).decode()


def read(text: str, face_format: str) -> pb.ReasoningState:
    """What a caller of `face_format` sent as state: of the format that made it. Nothing is refused: what is not wrapped
    is the face's own, whatever it looks like.
    """
    inner = (_decoded(text) or "") if face_format == "native" else text
    if inner.startswith(PREFIX) and (shown := _SHOWN.fullmatch(inner)):
        return pb.ReasoningState(format=shown[1], data=shown[2])
    return pb.ReasoningState(format=face_format, data=text)


def is_placeholder(signature: str) -> bool:
    """Return whether a signature of the native format only stands for one: no provider of another format is told it."""
    if len(signature) > MAX_PLACEHOLDER:
        return False
    return signature.replace("/", "_") in PLACEHOLDERS or _decoded(signature) in PLACEHOLDERS


def _decoded(text: str) -> str | None:
    """The text of base64 in either alphabet, with or without padding; None for what is no base64. What is no text has
    U+FFFD.
    """
    compact = text.translate(_STANDARD).rstrip("=")
    try:
        return binascii.a2b_base64(compact + "=" * (-len(compact) % 4), strict_mode=True).decode("utf-8", "replace")
    except ValueError:
        return None
