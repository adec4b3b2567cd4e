"""Search: leads to the one object that a text names, else lists the possible ones."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from http_facade.console.page_interface import Visit, object_path
from http_facade.console.pages.channel_pages import channel_path
from http_facade.console.pages.model_pages import model_path
from http_facade.console.pages.request_pages import call_path
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

MAX_HITS = 20
REQUEST_PREFIX, TASK_PREFIX = "req_", "task_"
MAX_LISTED = 1000


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
    """Return the objects that the text may mean: a call or a task by its id, others by parts of their names."""
    text = visit.filters.text("text")
    if not text:
        return SearchResult("", [])
    hits = await _calls(visit, text) or await _tasks(visit, text)
    if not hits and not text.startswith((REQUEST_PREFIX, TASK_PREFIX)):
        for find in (_keys, _accounts, _models, _channels, _people):
            hits += await find(visit, text)
    return SearchResult(text, hits[:MAX_HITS])


async def _calls(visit: Visit, text: str) -> list[Hit]:
    with suppress(UmgError):
        found = await visit.calls.call(pb.GetRequestRecordRequest(request_id=text), pb.GetRequestRecordResponse)
        return [Hit("request", found.record.request_id, printable(found.record.model), call_path(text))]
    return []


async def _keys(visit: Visit, text: str) -> list[Hit]:
    request = pb.ListKeysRequest(text=text[:200], include_ended=True, page_size=MAX_HITS)
    keys = (await visit.calls.call(request, pb.ListKeysResponse)).keys
    return [Hit("key", printable(key.settings.name), f"{key.prefix}…", object_path("keys", key.key_id)) for key in keys]


async def _accounts(visit: Visit, text: str) -> list[Hit]:
    if not visit.rights.may(pb.PERMISSION_ACCOUNTS_READ):
        return []
    request = pb.ListAccountsRequest(kind=pb.ACCOUNT_KIND_PROJECT, text=text[:200], page_size=MAX_HITS)
    accounts = (await visit.calls.call(request, pb.ListAccountsResponse)).accounts
    return [
        Hit("project", printable(each.settings.name), each.account_id, object_path("projects", each.account_id))
        for each in accounts
    ]


async def _tasks(visit: Visit, text: str) -> list[Hit]:
    if text.startswith(TASK_PREFIX) and visit.rights.may(pb.PERMISSION_TASKS_READ):
        with suppress(UmgError):
            task = (await visit.calls.call(pb.GetTaskRequest(task_id=text), pb.GetTaskResponse)).task
            return [Hit("task", task.task_id, printable(task.model), object_path("tasks", task.task_id))]
    return []


async def _models(visit: Visit, text: str) -> list[Hit]:
    if not visit.rights.may(pb.PERMISSION_PRICES_READ):
        return []
    request = pb.ListModelPricesRequest(text=text[:300], page_size=MAX_HITS)
    models = (await visit.calls.call(request, pb.ListModelPricesResponse)).models
    return [
        Hit("model", printable(each.model), printable(", ".join(each.aliases)), model_path(each.model))
        for each in models
        if any(text.lower() in name.lower() for name in (each.model, *each.aliases))
    ]


async def _channels(visit: Visit, text: str) -> list[Hit]:
    if not visit.rights.sees_channels:
        return []
    health = (await visit.calls.call(pb.ListChannelsRequest(), pb.ListChannelsResponse)).channels
    names = dict.fromkeys(each.channel for each in health if text.lower() in each.channel.lower())
    return [Hit("channel", printable(name), "", channel_path(name)) for name in names]


async def _people(visit: Visit, text: str) -> list[Hit]:
    if not visit.rights.may(pb.PERMISSION_USERS_READ):
        return []
    request = pb.ListUsersRequest(include_disabled=True, page_size=MAX_LISTED)
    users = (await visit.calls.call(request, pb.ListUsersResponse)).users
    return [
        Hit("person", printable(each.settings.name), each.user_id, object_path("people", each.user_id))
        for each in users
        if each.user_id == text or text.lower() in f"{each.settings.name} {each.settings.email}".lower()
    ]
