"""Texts of providers and callers as people may see them: in the log, in tables and in metrics."""


def printable(text: str) -> str:
    r"""Return the text with escapes as in JSON (`\u202e`) instead of control characters, line ends, and characters that
    are not seen or change the order of others.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
