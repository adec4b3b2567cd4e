"""Names of tools and ids of calls as providers of the format take them: letters, digits, `_` and `-`."""

import re
from collections import deque

from umg_grpc.v1 import pb

MAX_NAME = 128

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


class ToolNames:
    """The caller's names of tools <-> those that a provider is told. The same for a request and its answer."""

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._said: dict[str, str] = {}
        self._theirs: dict[str, str] = {}
        self.custom: set[str] = set()  # told names of tools that take free text
        declared = [tool.function.name or tool.custom.name for tool in request.tools]
        for name in sorted(filter(None, declared), key=_is_illegal):  # legal names first: they stay
            self.said(name)
        self.custom.update(self.said(tool.custom.name) for tool in request.tools if tool.HasField("custom"))

    def said(self, name: str) -> str:
        """The name as a provider is told it."""
        if name not in self._said:
            legal = _ILLEGAL.sub("_", name)[:MAX_NAME] or "_"
            plain, number = legal, 1
            while legal in self._theirs:
                number += 1
                suffix = f"_{number}"
                legal = plain[: MAX_NAME - len(suffix)] + suffix
            self._said[name], self._theirs[legal] = legal, name
        return self._said[name]

    def meant(self, name: str) -> str:
        """The caller's name of a tool that a provider calls."""
        return self._theirs.get(name, name)


def _is_illegal(name: str) -> bool:
    return len(name) > MAX_NAME or _ILLEGAL.search(name) is not None


class CallIds:
    """Ids of the calls of a conversation as a provider is told them: calls and results get the same one."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}
        self._taken: set[str] = set()
        self._open: dict[str, deque[str]] = {}  # name -> ids of the calls that came without one, in order

    def of_call(self, call: pb.ToolCall, own: str) -> str:
        """The id of a call; `own` where it has none."""
        if call.call_id:
            return self._legal(call.call_id)
        self._open.setdefault(call.name, deque()).append(self._legal(own))
        return self._said[own]

    def of_result(self, result: pb.ToolResult) -> str:
        """The id of the call that a result answers: without one, the first open call of its name, else of any."""
        if result.call_id:
            return self._legal(result.call_id)
        name = result.name if result.name in self._open else next(iter(self._open), None)
        if name is None:
            return self._legal(f"toolu_{result.name or 'unknown'}")
        ids = self._open[name]
        call_id = ids.popleft()
        if not ids:
            del self._open[name]
        return call_id

    def _legal(self, call_id: str) -> str:
        if call_id not in self._said:
            legal = plain = _ILLEGAL.sub("_", call_id)
            number = 1
            while legal in self._taken:
                number += 1
                legal = f"{plain}_{number}"
            self._said[call_id] = legal
            self._taken.add(legal)
        return self._said[call_id]
