"""Expected order of the events of a stream, written as a list of event names with quantifiers. `["message_start",
"ping*", "content_block_delta+", "message_stop"]`: `*` is any number, `+` at least one, `?` at most one. `a/b` is one of
several names, `...` any events, and a nested list a group, whose last item may be its quantifier.
"""

import re
from collections.abc import Sequence

EVENT_QUANTIFIERS = ("*", "+", "?")


def parse(order: Sequence[object]) -> re.Pattern[str]:
    """Convert an order to a regular expression over event names, each with a line feed. Raise ValueError if invalid."""
    return re.compile("".join(map(_pattern, order)))


def matches(pattern: re.Pattern[str], names: Sequence[str]) -> bool:
    """Return whether the event names `names` are in the order that `parse` converted to `pattern`."""
    return pattern.fullmatch("".join(f"{name}\n" for name in names)) is not None


def _pattern(item: object) -> str:
    match item:
        case "...":
            return r"(?:[^\n]*\n)*"
        case str() if item.rstrip("*+?"):
            name = item.rstrip("*+?")
            quantifier = item[len(name) :]
            if len(quantifier) > 1:
                raise ValueError(f"expected one of * + ? after {name!r}, got {quantifier!r}")
            names = "|".join(map(re.escape, name.split("/")))
            return f"(?:(?:{names})\n){quantifier}"
        case list() if item:
            group, quantifier = (item[:-1], item[-1]) if item[-1] in EVENT_QUANTIFIERS else (item, "")
            return f"(?:{''.join(map(_pattern, group))}){quantifier}"
        case _:  # any other value of YAML
            raise ValueError(f"expected a name of an event, `...` or a list of them, got {item!r}")
