"""Names of tools as providers take them, and calls that came without an id. A format says which names are legal."""

import hashlib
import re
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject


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
        """Return the nearest legal name. A name that has to be cut ends in a digest of the whole, so that it stays the
        same whatever else is declared.
        """
        plain = self.illegal.sub("_", name) or "_"
        plain = plain if self.name.match(plain) else f"_{plain}"
        if len(plain) <= self.most:
            return plain
        digest = hashlib.sha256(name.encode()).hexdigest()[:DIGEST_CHARACTERS]
        return f"{plain[: self.most - DIGEST_CHARACTERS - 1]}_{digest}"


class ToolName(NamedTuple):
    """Name of a tool as its caller declared it."""

    namespace: str
    name: str

    @property
    def joined(self) -> str:
        """The one name of both, for formats without namespaces."""
        return f"{self.namespace}{SEPARATOR}{self.name}" if self.namespace else self.name


SEPARATOR = "__"
"""Between a namespace and a name, as coding agents join the names of a server and its tools."""
DIGEST_CHARACTERS = 8


def name_of(tool: pb.Tool) -> ToolName:
    """Return the name of a function or a custom tool; the name is "" for any other tool."""
    return ToolName(tool.namespace.name, tool.function.name or tool.custom.name)


class ToolNames:
    """The caller's names of tools <-> the names that a provider gets, one to one.

    The same request gives the same names, so that an answer is read by the names that its request was written with.
    """

    def __init__(self, request: pb.GenerateRequest, spelling: Spelling) -> None:
        self._spelling = spelling
        self._tools = {name: tool for tool in request.tools if (name := name_of(tool)).name}
        legal = [name for name in self._tools if not name.namespace and spelling.name.fullmatch(name.name)]
        self._sent = {name: name.name for name in legal}
        self._declared = {sent: name for name, sent in self._sent.items()}
        self._first = dict[str, ToolName]()  # namespace -> its first tool
        for name in self._tools:
            self._name(name)
            self._first.setdefault(name.namespace, name)

    def of_tool(self, tool: pb.Tool) -> str:
        """Return the provider's name of a declared tool."""
        return self._name(name_of(tool))

    def of_call(self, call: pb.ToolCall) -> str:
        """Return the provider's name of a called tool, also of one that is not declared any more."""
        return self._name(ToolName(call.namespace, call.name))

    def of_choice(self, name: str) -> str:
        """Return the provider's name of a tool that is chosen by its name alone."""
        plain = ToolName("", name)
        if plain not in self._tools:
            plain = next((declared for declared in self._tools if declared.name == name), plain)
        return self._name(plain)

    def resolve(self, call: pb.ToolCall) -> bool:
        """Give a call of a provider the caller's names of its tool. Return whether the tool takes free text."""
        name = self._declared.get(call.name) or ToolName("", call.name)
        tool = self._tools.get(name)
        call.name, call.namespace = name.name, name.namespace
        if tool is not None:
            call.tool_type = tool.function.declared.type
        return tool is not None and tool.HasField("custom")

    def head(self, tool: pb.Tool) -> JsonObject:
        """Return `name` and `description` of a declared tool for a format without namespaces. The description of the
        first tool of a namespace begins with that of the namespace.
        """
        kind = tool.function if tool.HasField("function") else tool.custom
        head: JsonObject = {"name": self.of_tool(tool)}
        if kind.HasField("description"):
            head["description"] = kind.description
        group = tool.namespace
        if group.description and name_of(tool) == self._first[group.name]:
            head["description"] = f"{group.name}: {group.description}\n\n{kind.description}".rstrip()
        return head

    def _name(self, name: ToolName) -> str:
        if name not in self._sent:
            joined = name.joined
            sent = self._unlike(joined if self._spelling.name.fullmatch(joined) else self._spelling.legal(joined))
            self._sent[name], self._declared[sent] = sent, name
        return self._sent[name]

    def _unlike(self, name: str) -> str:
        """The name, or one like it that is not taken."""
        number, unlike = 1, name
        while unlike in self._declared:
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
