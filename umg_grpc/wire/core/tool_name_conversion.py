"""Conversion of tool names to names that a provider accepts, and ids for calls without one."""

import hashlib
import re
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report


@dataclass(frozen=True)
class NameRules:
    """Rules of providers for tool names: patterns of accepted names and of rejected characters, and maximum length."""

    name: re.Pattern[str]
    illegal: re.Pattern[str]
    """Pattern of a character that no accepted name contains."""
    max_characters: int

    def legal(self, name: str) -> str:
        """Return an accepted name that is similar: rejected characters become underscores, and a long name is cut. A
        cut name ends with a digest of the full name, so that it does not depend on the other tools.
        """
        plain = self.illegal.sub("_", name) or "_"
        plain = plain if self.name.match(plain) else f"_{plain}"
        if len(plain) <= self.max_characters:
            return plain
        digest = hashlib.sha256(name.encode()).hexdigest()[:DIGEST_CHARACTERS]
        return f"{plain[: self.max_characters - DIGEST_CHARACTERS - 1]}_{digest}"


class ToolName(NamedTuple):
    """Name of a tool as the caller declared it, with its namespace ("" without one)."""

    namespace: str
    name: str

    @property
    def joined(self) -> str:
        """Namespace and name of the tool as one name, for formats without namespaces."""
        return f"{self.namespace}{NAMESPACE_SEPARATOR}{self.name}" if self.namespace else self.name


NAMESPACE_SEPARATOR = "__"
"""Separator between namespace and name. Coding agents use it between the names of a server and of its tool."""
DIGEST_CHARACTERS = 8
NUMBER_CHARACTERS = 8
"""Characters that are reserved for the number in a name that another tool has already."""


def name_of(tool: pb.Tool) -> ToolName:
    """Return the namespace and name of a function or a custom tool; the name is "" for any other tool."""
    return ToolName(tool.namespace.name, tool.function.name or tool.custom.name)


class ToolNames:
    """Mapping between the caller's tool names and the unique names that a provider receives. Of different tools with
    one name, the first has the name and the others get variants; for the caller, calls of all of them have the name.

    Equal requests give equal names, so a response is decoded with the names with which its request was encoded.
    """

    def __init__(self, request: pb.GenerateRequest, rules: NameRules, reserved: Collection[str] = ()) -> None:
        """Create the mapping for one request and its response. `reserved`: names of tools that the provider runs."""
        self._rules = rules
        self._reserved = reserved
        # plain literals, since most requests have no tools, and a call of `dict[str, str]` takes ten times as long
        self._tools: dict[ToolName, pb.Tool] = {}
        self._sent: dict[ToolName, str] = {}
        self._declared: dict[str, ToolName] = {}
        self._first: dict[str, ToolName] = {}  # namespace -> its first tool
        self._numbers: dict[str, int] = {}  # first characters of equal names -> last number appended
        self._variants: dict[bytes, str] = {}  # a whole tool -> its name, for tools whose name an earlier tool has
        self._variant_tools: dict[str, pb.Tool] = {}
        self.has_repeated = False
        """Whether several tools have one name."""
        if request.tools:
            self._name_tools(request.tools)

    def _name_tools(self, tools: Iterable[pb.Tool]) -> None:
        named = [(name, tool) for tool in tools if (name := name_of(tool)).name]
        first = dict(reversed(named))
        self._tools = {name: first[name] for name, _ in named}  # the first tool of each name, in order
        legal = [name for name in self._tools if not name.namespace and self._rules.name.fullmatch(name.name)]
        self._sent = {name: name.name for name in legal if name.name not in self._reserved}
        self._declared = {sent: name for name, sent in self._sent.items()}
        for name in self._tools:
            self._name(name)
            self._first.setdefault(name.namespace, name)
        self.has_repeated = len(named) > len(self._tools)
        if self.has_repeated:
            self._name_variants(named)

    def _name_variants(self, named: list[tuple[ToolName, pb.Tool]]) -> None:
        firsts = {_whole(tool) for tool in self._tools.values()}
        for name, tool in named:
            if (whole := _whole(tool)) not in firsts and whole not in self._variants:
                sent = self._unused_name(self._sent[name])
                self._variants[whole], self._variant_tools[sent], self._declared[sent] = sent, tool, name

    def of_tool(self, tool: pb.Tool) -> str:
        """Return the provider's name of a tool that the request declares."""
        if self._variants and (variant := self._variants.get(_whole(tool))) is not None:
            return variant
        return self._name(name_of(tool))

    def of_call(self, call: pb.ToolCall) -> str:
        """Return the provider's name of the tool in a call, even if the request no longer declares that tool."""
        return self._name(ToolName(call.namespace, call.name))

    def of_choice(self, name: str) -> str:
        """Return the provider's name of a tool that a tool choice names without the tool's namespace."""
        return self._name(self._by_name.get(name) or ToolName("", name))

    def declares(self, name: str) -> bool:
        """Return whether a function or custom tool of the request has this name, ignoring its namespace."""
        return name in self._by_name

    @cached_property
    def _by_name(self) -> dict[str, ToolName]:
        plain = {name.name: name for name in self._tools if not name.namespace}
        return {name.name: name for name in reversed(self._tools)} | plain

    def resolve(self, call: pb.ToolCall) -> bool:
        """Replace the provider's tool name in a call, in place, by the caller's name and namespace; a name that the
        request does not declare stays. Return whether the tool is a custom tool, which takes free text.
        """
        name = self._declared.get(call.name) or ToolName("", call.name)
        tool = self._variant_tools.get(call.name) or self._tools.get(name)
        call.name, call.namespace = name.name, name.namespace
        if tool is not None:
            call.tool_type = tool.function.declared.type
        return tool is not None and tool.HasField("custom")

    def head(self, tool: pb.Tool) -> JsonObject:
        """Return the members `name` and `description` of a declared tool, for a format without namespaces. The
        description of the first tool of a namespace begins with the namespace's description.
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
            sent = self._unused_name(joined if self._rules.name.fullmatch(joined) else self._rules.legal(joined))
            self._sent[name], self._declared[sent] = sent, name
        return self._sent[name]

    def _unused_name(self, name: str) -> str:
        """Return a provider's name, or a numbered variant of it if another tool of the request has the name."""
        stem, unused = name[: self._rules.max_characters - NUMBER_CHARACTERS], name
        while unused in self._declared or unused in self._reserved:
            # continues from the last number: a request may have many equal names
            number = self._numbers[stem] = self._numbers.get(stem, 1) + 1
            end = f"_{number}"
            unused = name[: self._rules.max_characters - len(end)] + end
        return unused


def _whole(tool: pb.Tool) -> bytes:
    return tool.SerializeToString(deterministic=True)


def distinct_tools(request: pb.GenerateRequest, names: ToolNames, report: Report) -> Iterable[tuple[int, pb.Tool]]:
    """Return (index, tool) of a request's tools without repetitions of a function or custom tool, which many providers
    reject. `names`: the mapping for these tools; `report`: collects the repetitions.
    """
    if not names.has_repeated:
        return enumerate(request.tools)
    seen, distinct = set[bytes](), list[tuple[int, pb.Tool]]()
    for index, tool in enumerate(request.tools):
        whole = _whole(tool) if name_of(tool).name else b""
        if whole and whole in seen:
            report.drop("tools", "each once")
            continue
        seen.add(whole)
        distinct.append((index, tool))
    return distinct


class OpenCalls:
    """Ids of tool calls without a result so far, by tool, for results that do not state the id of their call."""

    def __init__(self) -> None:
        self._ids = OrderedDict[str, deque[str]]()  # name of the tool -> ids, in order

    def add(self, name: str, call_id: str) -> None:
        self._ids.setdefault(name, deque()).append(call_id)

    def answered(self, name: str) -> str:
        """Remove and return the id of the call to which a result of tool `name` belongs. It is the tool's first open
        call, else the first open call of any tool; "" if no call is open.
        """
        called = name if name in self._ids else next(iter(self._ids), None)
        if called is None:
            return ""
        ids = self._ids[called]
        call_id = ids.popleft()
        if not ids:
            del self._ids[called]
        return call_id
