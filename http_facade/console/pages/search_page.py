"""Search: leads to the one object that a text names, else lists the possible ones."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from http_facade.console.page_interface import Visit
from http_facade.console.pages.request_pages import call_path
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

MAX_HITS = 20
REQUEST_PREFIX = "req_"


@dataclass(frozen=True)
class Hit:
    """Object that a text may mean."""

    kind: str
    """Key of its words."""
    name: str
    note: str
    path: str


@dataclass(frozen=True)
class SearchResult:
    """Content of the page of a search."""

    text: str
    hits: Sequence[Hit]

    @property
    def target(self) -> str:
        """Path of the only hit, to which the browser is led; "" with none or several."""
        return self.hits[0].path if len(self.hits) == 1 else ""


async def load_search(visit: Visit) -> SearchResult:
    """Return the objects that the text may mean: a call by its id; keys and accounts by parts of their names."""
    text = visit.filters.text("text")
    if not text:
        return SearchResult("", [])
    hits = await _calls(visit, text) or [*await _keys(visit, text), *await _accounts(visit, text)]
    return SearchResult(text, hits[:MAX_HITS])


async def _calls(visit: Visit, text: str) -> list[Hit]:
    with suppress(UmgError):
        found = await visit.calls.call(pb.GetRequestRecordRequest(request_id=text), pb.GetRequestRecordResponse)
        return [Hit("request", found.record.request_id, printable(found.record.model), call_path(text))]
    return []


async def _keys(visit: Visit, text: str) -> list[Hit]:
    if text.startswith(REQUEST_PREFIX):
        return []
    request = pb.ListKeysRequest(text=text[:200], include_ended=True, page_size=MAX_HITS)
    keys = (await visit.calls.call(request, pb.ListKeysResponse)).keys
    return [
        Hit("key", printable(key.settings.name), f"{key.prefix}…", f"/console/keys/{quote(key.key_id)}") for key in keys
    ]


async def _accounts(visit: Visit, text: str) -> list[Hit]:
    if not visit.rights.may(pb.PERMISSION_ACCOUNTS_READ):
        return []
    request = pb.ListAccountsRequest(kind=pb.ACCOUNT_KIND_PROJECT, page_size=1000)
    accounts = (await visit.calls.call(request, pb.ListAccountsResponse)).accounts
    return [
        Hit("project", printable(each.settings.name), each.account_id, f"/console/projects/{quote(each.account_id)}")
        for each in accounts
        if text.lower() in each.settings.name.lower() or each.account_id == text
    ]
