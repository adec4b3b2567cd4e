"""Model names in requests that no model has: the error for them, and the most similar existing names."""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import islice

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_retirement_dates import MODEL_ENDS
from umg_grpc.knowledge.operations_by_model_id import UNSERVED_OPERATIONS
from umg_grpc.v1 import pb

MAX_ID_LENGTH = 256
MIN_CHARACTERS, MAX_CHARACTERS = 3, 100
"""Minimum and maximum letters of a name whose similar models are searched; these share its first MIN_CHARACTERS."""
MAX_COMPARED, MAX_SHOWN = 50, 2
"""Maximum number of names that are compared with an unknown name, and of similar names in the error."""
MIN_SIMILARITY = 0.8


def model_not_found(model: str) -> UmgError:
    """Return the error for an id that does not exist or that the caller may not use: the text is the same. It adds that
    the vendor has shut the model down, or why no channel has it, if known.
    """
    named = model if len(model) <= MAX_ID_LENGTH else f"{model[:MAX_ID_LENGTH]}..."
    message = f"The model `{named}` does not exist or you do not have access to it."
    if (end := next((text for pattern, text in MODEL_ENDS if pattern.fullmatch(named)), None)) is not None:
        message += f" It {end}."
    elif operation := next((name for ids, name in UNSERVED_OPERATIONS if ids.fullmatch(named.lower())), ""):
        message += f" It has the operation `{operation}`, which is not served."
    return UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, message, model=named)


def letters_of(name: str) -> str:
    """Return the letters and digits of a model's name in lower case, to compare it with mistyped names."""
    return "".join(filter(str.isalnum, name.lower()))


def similar_names(name: str, known: Sequence[tuple[str, str]], may_show: Callable[[str], bool]) -> list[str]:
    """Return at most `MAX_SHOWN` names that are most similar to an unknown one; empty if none is similar.
    `known`: pairs (`letters_of` a name, name). `may_show`: returns whether the caller may learn of a name.
    """
    wanted = letters_of(name)
    if not MIN_CHARACTERS <= len(wanted) <= MAX_CHARACTERS:
        return []
    found = [(0.0, written) for letters, written in known if _end_alike(letters, wanted)]
    for letters, written in _with_common_beginning(known, wanted):
        matcher = SequenceMatcher(None, letters, wanted)
        if matcher.quick_ratio() >= MIN_SIMILARITY and (ratio := matcher.ratio()) >= MIN_SIMILARITY:
            found.append((1 - ratio, written))
    shown = (written for _, written in sorted(set(found)) if may_show(written))
    return list(dict.fromkeys(islice(shown, MAX_SHOWN)))


def _with_common_beginning(names: Sequence[tuple[str, str]], wanted: str) -> Sequence[tuple[str, str]]:
    """Return at most `MAX_COMPARED` names that begin like `wanted`, compared by as few letters as that allows."""
    length = MIN_CHARACTERS
    while len(names := [row for row in names if row[0].startswith(wanted[:length])]) > MAX_COMPARED:
        if length >= len(wanted):
            return names[:MAX_COMPARED]
        length += 2
    return names


def _end_alike(letters: str, wanted: str) -> bool:
    return letters.endswith(wanted) or (len(letters) >= MIN_CHARACTERS and wanted.endswith(letters))
