"""Page of the audit log: each act with its actor, time, origin and object, and the settings before and after."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from http_facade.console.address_filters import Filters, ListPages
from http_facade.console.page_interface import Visit, object_path
from http_facade.console.pages.request_pages import call_path
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

PAGE_SIZE = 50
OBJECT_PAGES = {
    "key": "keys",
    "channel": "channels",
    "model": "models",
    "organization": "projects",
    "project": "projects",
    "user": "people",
    "task": "tasks",
}
"""Kind of an object -> its pages below `/console`."""


class Change(NamedTuple):
    """Setting that an act changed; "" for no value."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class AuditLine:
    """Act with the settings that it changed."""

    event: pb.AuditEvent
    act: str
    actor: str
    origin: str
    object_name: str
    object_path: str
    """Page of the object; "" if there is none."""
    changes: Sequence[Change]
    request_path: str


@dataclass(frozen=True)
class AuditTable:
    """Content of the page of the audit log."""

    rows: Sequence[AuditLine]
    refused_only: bool
    pages: ListPages
    command: str
    """Command that prints the same acts; "" where a filter has no flag."""


async def load_audit(visit: Visit) -> AuditTable:
    """Return a page of the acts that the filters select, newest first."""
    filters = visit.filters
    refused_only = bool(filters.text("refused"))
    request = pb.ListAuditEventsRequest(
        start_time=filters.start_time(),
        end_time=filters.end_time(),
        actor_ids=filters.values("actor"),
        object_ids=filters.values("object"),
        object_kinds=filters.values("kind"),
        account_ids=filters.values("project"),
        refused_only=refused_only,
        page_size=PAGE_SIZE,
        page_token=filters.page_token,
    )
    response = await visit.calls.call(request, pb.ListAuditEventsResponse)
    return AuditTable(
        rows=[_row(event) for event in response.events],
        refused_only=refused_only,
        pages=filters.pages(response.next_page_token),
        command=_command(filters, refused_only=refused_only),
    )


def _command(filters: Filters, *, refused_only: bool) -> str:
    if any(filters.values(name) for name in ("actor", "object", "kind", "project", "until")):
        return ""
    return f"umg audit list --since {filters.text('since')}{' --refused' if refused_only else ''}"


def history_path(visit: Visit, object_id: str, kind: str = "") -> str:
    """Return the path of the acts on an object; "" for a person that may not see them. `kind`: of an object whose id is
    a name.
    """
    if not visit.rights.may(pb.PERMISSION_AUDIT_READ):
        return ""
    of_kind = f"&kind={kind}" if kind else ""
    return f"/console/audit?since=90d&object={quote(object_id, safe='')}{of_kind}"


def _row(event: pb.AuditEvent) -> AuditLine:
    pages = OBJECT_PAGES.get(event.object_kind, "")
    return AuditLine(
        event=event,
        act=printable(event.method.rpartition("/")[2]),
        actor=printable(event.actor_name or event.actor_id),
        origin=printable(" ".join(filter(None, (event.address, event.credential)))),
        object_name=printable(event.object_name or event.object_id),
        object_path=object_path(pages, event.object_id) if pages and event.object_id else "",
        changes=list(_changes(_settings(event.before_json), _settings(event.after_json))),
        request_path=call_path(event.request_id) if event.request_id else "",
    )


def _settings(text: str) -> Mapping[str, object]:
    found = msgspec.json.decode(text) if text else {}
    return found if isinstance(found, dict) else {"": found}


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        yield Change(printable(name), _text(before.get(name)), _text(after.get(name)))


def _text(value: object) -> str:
    if value is None or value == "":
        return ""
    return printable(value if isinstance(value, str) else msgspec.json.encode(value).decode())
