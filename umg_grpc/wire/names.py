"""Names of tools as providers take them, and calls that came without an id. A format says which names are legal."""

import re
from collections import deque
from dataclasses import dataclass

from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Spelling:
    """Which names of tools a format's providers take."""

    name: re.Pattern[str]
    """A legal name."""
    illegal: re.Pattern[str]
    """One character that is in none."""
    most: int
    """Characters of the longest."""

    def legal(self, name: str) -> str:
        """What comes nearest to the name."""
        plain = self.illegal.sub("_", name) or "_"
        return (plain if self.name.match(plain) else f"_{plain}")[: self.most]


class ToolNames:
    """The caller's names of tools <-> those that a provider is told, one to one.

    The same request gives the same names, so that an answer is read by what its request was written with.
    """

    def __init__(self, request: pb.GenerateRequest, spelling: Spelling) -> None:
        self.custom = frozenset(tool.custom.name for tool in request.tools if tool.HasField("custom"))
        """The caller's names of tools that take free text."""
        self._spelling = spelling
        declared = [name for tool in request.tools if (name := tool.function.name or tool.custom.name)]
        self._told = {name: name for name in declared if spelling.name.fullmatch(name)}
        self._meant = dict(self._told)
        for name in declared:
            self.told(name)

    def told(self, name: str) -> str:
        """The name as a provider is told it; also of a tool that is not declared any more."""
        if name not in self._told:
            told = self._unlike(name if self._spelling.name.fullmatch(name) else self._spelling.legal(name))
            self._told[name], self._meant[told] = told, name
        return self._told[name]

    def meant(self, name: str) -> str:
        """The caller's name of a tool that a provider calls."""
        return self._meant.get(name, name)

    def _unlike(self, name: str) -> str:
        """The name, or one like it that is not taken."""
        number, unlike = 1, name
        while unlike in self._meant:
            number += 1
            end = f"_{number}"
            unlike = name[: self._spelling.most - len(end)] + end
        return unlike


class OpenCalls:
    """Calls that came without an id, by the ids that we gave them, until their results come."""

    def __init__(self) -> None:
        self._ids: dict[str, deque[str]] = {}  # name of the tool -> ids, in order

    def add(self, name: str, call_id: str) -> None:
        self._ids.setdefault(name, deque()).append(call_id)

    def answered(self, name: str) -> str:
        """The id of the call that a result without one answers: the first open one of that name, else of any; "" where
        none is open.
        """
        called = name if name in self._ids else next(iter(self._ids), None)
        if called is None:
            return ""
        ids = self._ids[called]
        call_id = ids.popleft()
        if not ids:
            del self._ids[called]
        return call_id
