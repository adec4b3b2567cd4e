"""Quoting of texts in command lines that people paste: the only module of the commands with the syntax of shells.

Ids of models come from providers. In no shell (bash, dash, zsh, fish, PowerShell, cmd) may a part of an id be executed:
a character that is syntax in one of them is always escaped. Control characters, which a terminal would take as keys, do
not occur. `http_facade/assets/quoting.js` has the same rules for the pages.
"""

import json
import re

_BARE = re.compile(r"[A-Za-z0-9_./:][A-Za-z0-9_./:@+=,-]*")
_PLAIN = frozenset(" _./:@+=,~*?#;(){}[]-")
_JSON_ESCAPED = re.compile(r"""\\["\\]|['`$!%&|<>^\x7f]""")


def shell_word(text: str) -> str:
    """Return a word of a command line that a shell passes on as this text."""
    if _BARE.fullmatch(text):
        return text
    if all(character in _PLAIN or character.isalnum() for character in text):
        return f"'{text}'"
    head = text.rstrip("\n")
    ends = text[len(head) :]
    # $( ) removes the line ends at the end
    return f"\"$(printf %b '{''.join(map(_octal, head))}')\"" + (f"'{ends}'" if ends else "")


def _octal(character: str) -> str:
    if character in _PLAIN or character.isalnum():
        return character
    return "".join(f"\\0{byte:03o}" for byte in character.encode(errors="surrogateescape"))


def shell_json(value: object) -> str:
    """Return a word of a command line with the JSON of a value."""
    return f"'{_JSON_ESCAPED.sub(_utf16, json.dumps(value))}'"


def _utf16(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0][-1]):04x}"
