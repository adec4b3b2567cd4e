"""Names of tools as native takes them, and which of them stand for something else."""

import re

from umg_grpc.v1 import pb

LEGAL = re.compile(r"[A-Za-z_][\w.:-]{0,63}", re.ASCII)
MAX_CHARACTERS = 64

_ILLEGAL = re.compile(r"[^\w.:-]", re.ASCII)


class ToolNames:
    """The tools of one request by their names there and at the provider: one to one, whatever the caller's are.

    The same request gives the same names, so that an answer is read by what its request was written with. What came in
    native goes as it is.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self.custom = frozenset(tool.custom.name for tool in request.tools if tool.HasField("custom"))
        self._legal: dict[str, str] = {}
        if request.source.format == "native":
            self._original = dict[str, str]()
            return
        declared = [tool.function.name or tool.custom.name for tool in request.tools]
        taken = {name for name in declared if LEGAL.fullmatch(name)}
        for name in declared:
            if name and name not in taken and name not in self._legal:
                taken.add(legal := _unlike(_legal(name), taken))
                self._legal[name] = legal
        self._original = {legal: name for name, legal in self._legal.items()}

    def legal(self, name: str) -> str:
        """The name that the provider is told."""
        return self._legal.get(name) or (name if LEGAL.fullmatch(name) else _legal(name))

    def original(self, name: str) -> str:
        """The name that the caller knows."""
        return self._original.get(name, name)


def _legal(name: str) -> str:
    plain = _ILLEGAL.sub("_", name) or "_"
    return (plain if LEGAL.match(plain) else f"_{plain}")[:MAX_CHARACTERS]


def _unlike(name: str, taken: set[str]) -> str:
    """The name, or one like it that is not taken."""
    number, unlike = 1, name
    while unlike in taken:
        number += 1
        end = f"_{number}"
        unlike = name[: MAX_CHARACTERS - len(end)] + end
    return unlike
