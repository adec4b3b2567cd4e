"""Names of tools and ids of calls as providers of the format take them: at most 64 characters, in names none but
letters, digits, `_` and `-`.
"""

import hashlib
import re

from umg_grpc.v1 import pb

MOST_CHARACTERS = 64

_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


class ToolNames:
    """The caller's names of tools <-> those that a provider is told, one to one. The same for a request and its answer.
    What came in chat goes as it is.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._told: dict[str, str] = {}
        self._meant: dict[str, str] = {}
        if request.source.format == "chat":
            return
        declared = [tool.function.name or tool.custom.name for tool in request.tools]
        illegal = [name for name in declared if name and not _LEGAL.fullmatch(name)]
        if not illegal:
            return
        taken = set(declared)
        for name in illegal:
            if name not in self._told:
                self._told[name] = told = _unlike(_legal(name), taken)
                self._meant[told] = name
                taken.add(told)

    def told(self, name: str) -> str:
        """The name as a provider is told it; also of a tool that is not declared any more."""
        return self._told.get(name) or (name if _LEGAL.fullmatch(name) else _legal(name))

    def meant(self, name: str) -> str:
        """The caller's name of a tool that a provider calls."""
        return self._meant.get(name, name)


def told_id(call_id: str) -> str:
    """The id of a call as a provider is told it: itself unless it is too long. The same for a call and its result."""
    if len(call_id) <= MOST_CHARACTERS:
        return call_id
    digest = hashlib.sha256(call_id.encode()).hexdigest()[:32]
    return f"{call_id[: MOST_CHARACTERS - 33]}_{digest}"


def _legal(name: str) -> str:
    return _ILLEGAL.sub("_", name)[:MOST_CHARACTERS] or "_"


def _unlike(name: str, taken: set[str]) -> str:
    """The name, or one like it that is not taken."""
    number, unlike = 1, name
    while unlike in taken:
        number += 1
        end = f"_{number}"
        unlike = name[: MOST_CHARACTERS - len(end)] + end
    return unlike
