"""Opaque reasoning state (a signature, for example) for callers of a format that did not create it, in both directions.

State of the caller's own format is sent unchanged. State of any other format is sent as `umg.<format>.<data>`. Callers
of native get the base64 of that text, since native clients decode the field (reference, 6.4).
"""

import base64
import binascii
import re

from umg_grpc.v1 import pb

STATE_PREFIX = "umg."

NO_SIGNATURE = "skip_thought_signature_validator"
"""Signature, already in base64, for a call that was not made by native's model. From the third generation on, native
rejects an unsigned call in the current turn (reference, 6.4).
"""
# Placeholders that callers of native send instead of a signature, as text or as its base64. None of them is state.
SIGNATURE_PLACEHOLDERS = frozenset({NO_SIGNATURE, "context_engineering_is_the_way_to_go"})
MAX_PLACEHOLDER = 64  # characters

_WRAPPED = re.compile(r"umg\.([a-z_]{1,32})\.(.+)", re.DOTALL)
_STANDARD = str.maketrans("-_", "+/")


def show(state: pb.ReasoningState, face_format: str) -> str:
    """Return a provider's reasoning state (opaque data) as text for a caller of `face_format`; `read` decodes the text.

    State of another format is wrapped with that format's name. State of the caller's own format is wrapped, too, if
    `read` would not return it unchanged: it looks wrapped (the provider is another gateway) or, in native, is no
    base64.
    """
    own = state.format in ("", face_format)
    if face_format != "native":
        wrapped = not own or state.data.startswith(STATE_PREFIX)
        return f"{STATE_PREFIX}{state.format or face_format}.{state.data}" if wrapped else state.data
    if own and not (_decoded(state.data) or STATE_PREFIX).startswith(STATE_PREFIX):
        return state.data
    return base64.b64encode(f"{STATE_PREFIX}{state.format or face_format}.{state.data}".encode()).decode()


def read(text: str, face_format: str) -> pb.ReasoningState:
    """Return the reasoning state that a caller of `face_format` sent back, with the format that created it. Any text is
    accepted: a text that the gateway did not wrap is state of the caller's own format.
    """
    inner = (_decoded(text) or "") if face_format == "native" else text
    if inner.startswith(STATE_PREFIX) and (found := _WRAPPED.fullmatch(inner)):
        return pb.ReasoningState(format=found[1], data=found[2])
    return pb.ReasoningState(format=face_format, data=text)


def is_placeholder(signature: str) -> bool:
    """Return whether a native signature is only a placeholder, which providers of other formats are not sent."""
    if len(signature) > MAX_PLACEHOLDER:
        return False
    return signature.replace("/", "_") in SIGNATURE_PLACEHOLDERS or _decoded(signature) in SIGNATURE_PLACEHOLDERS


def _decoded(text: str) -> str | None:
    compact = text.translate(_STANDARD).rstrip("=")
    try:
        return binascii.a2b_base64(compact + "=" * (-len(compact) % 4), strict_mode=True).decode("utf-8", "replace")
    except ValueError:
        return None
