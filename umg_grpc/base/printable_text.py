"""Texts of providers and callers as people may see them: in the log, in tables and in metrics."""

import json

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which spreadsheets recognize a formula (OWASP, "CSV Injection")."""


def printable(text: str) -> str:
    r"""Return the text with escapes as in JSON (`\u202e`) in place of control characters and line ends. Characters that
    are invisible, or change the order of others, are escaped, too.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def printable_lines(text: str) -> str:
    """Return a text of several lines with the escapes of `printable`, but with its line ends."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """Return a JSON text with these escapes as JSON has them: two for a character beyond 16 bits."""
    return "".join(each if each.isprintable() or each == "\n" else _json_escaped(each) for each in text)


def spreadsheet_text(text: str) -> str:
    """Return a text for a cell of CSV: one that a spreadsheet would run as a formula begins with an apostrophe, since
    callers and providers choose some of the texts.
    """
    return f"'{text}" if len(text) > 1 and text.startswith(FORMULA_STARTS) else text


def _json_escaped(character: str) -> str:
    return "\\u007f" if character == "\x7f" else json.dumps(character)[1:-1]


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
