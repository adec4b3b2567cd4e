"""Members by which responses of makers and relays describe a task: state, id, progress, files and failure. A relay may
wrap another maker's response several times. The rows are in `data/task_members.json`; an earlier row takes precedence
over a later one with the same role.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Role = Literal["wrapper", "status", "id", "request_id", "progress", "reason", "code", "file", "bytes", "seconds"]
"""`wrapper`: object, or list with one object, around the task; `request_id`: id of the request, which some makers use
as id of the task; `reason`, `code`: those of a failure; `file`: address of a video; `bytes`: a video in base64;
`seconds`: its length.
"""
Path = tuple[str, ...]
"""Names of members from the outside in; `EACH_ITEM` for all items of a list."""
EACH_ITEM = "[]"
EVERY_PROTOCOL = "*"


class TaskMember(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of members."""

    role: Role
    path: str
    """Dotted path; `[]` after a name for each item of its list."""
    protocols: tuple[str, ...]
    """Protocols in whose responses the member has this role; `*` for all."""
    source: str
    as_of: str


def _by_role() -> Mapping[Role, Sequence[TaskMember]]:
    members = dict[Role, list[TaskMember]]()
    for row in read_rows("task_members", TaskMember):
        members.setdefault(row.role, []).append(row)
    return MappingProxyType(members)


TASK_MEMBERS = _by_role()
"""Role -> its rows, the preferred first."""


@cache
def paths_of(role: Role, protocol: str) -> Sequence[Path]:
    """Return the paths of the members with a role in the responses of a protocol, the preferred first."""
    rows = TASK_MEMBERS[role]
    return tuple(_path(row.path) for row in rows if EVERY_PROTOCOL in row.protocols or protocol in row.protocols)


def _path(text: str) -> Path:
    return tuple(text.replace(EACH_ITEM, f".{EACH_ITEM}").removeprefix(".").split("."))
