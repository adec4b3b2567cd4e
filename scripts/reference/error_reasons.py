"""Reference page of the reasons of errors with their statuses and metadata, from the comments of the enum and the
tables of statuses.
"""

import re
from dataclasses import dataclass

from scripts.reference.markdown import code, paragraph, table
from scripts.reference.schema import schema
from umg_grpc.base.grpc_status import HTTP_STATUSES
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.http_status import HTTP_STATUS

PREFIX = "ERROR_REASON_"
STATUSES = re.compile(r" ?[A-Z_]+, HTTP \d+\.$")
"""End of a comment, which the columns of the page repeat."""


@dataclass(frozen=True)
class Reason:
    """Reason of a failed call."""

    name: str
    """Name without the prefix of the enum, as in `google.rpc.ErrorInfo`."""
    grpc_status: str
    http_status: int
    description: str


def reasons() -> list[Reason]:
    """Return all reasons, in the order of the enum."""
    [enum] = [each for each in schema().enums if each.name == "ErrorReason"]
    found = []
    for value in enum.members:
        reason = pb.ErrorReason.Value(value.name)
        name = value.name.removeprefix(PREFIX)
        description = STATUSES.sub("", paragraph(value.description))
        found.append(Reason(name, HTTP_STATUSES[reason].name, HTTP_STATUS[reason], description))
    return found


HEAD = """# Reasons of errors

Every reason of a failed call, with its statuses and the keys of its metadata. Over gRPC the reason is in the
`google.rpc.ErrorInfo` of the status details (domain `umg`); over HTTP each wire format has its own body.
[Kinds of failures](../operations.md#kinds-of-failures) has the reaction to each failure of a provider.
"""


def page() -> str:
    """Return the reference page of the reasons, as Markdown."""
    rows = [[code(each.name), str(each.http_status), code(each.grpc_status), each.description] for each in reasons()]
    return f"{HEAD}\n{table(('reason', 'HTTP', 'gRPC', 'meaning'), rows)}"
