"""Escapes for characters that some clients mistake for line ends."""


def escaped(document: bytes) -> bytes:
    """Return the JSON with U+0085, U+2028 and U+2029, which occur in strings only, escaped.

    None of them ends a line of a stream, but older google-genai and ollama clients in Python split lines there.
    """
    if 0xE2 in document:
        document = document.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
    if 0xC2 in document:
        document = document.replace(b"\xc2\x85", rb"\u0085")
    return document
