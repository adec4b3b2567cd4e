"""Interface of the console's pages: the request that a page gets, and the end of an act."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Protocol, TypeAlias, runtime_checkable
from urllib.parse import quote

from http_facade.console.address_filters import Filters
from http_facade.console.caller_rights import CallerRights, ServiceCalls
from umg_grpc.v1 import pb

CALLS_PATH = "/console/requests"


def object_path(page: str, object_id: str) -> str:
    """Return the path of the page of an object, by the last part of the path of its list and its id."""
    return f"/console/{page}/{quote(object_id, safe='')}"


@dataclass(frozen=True)
class Visit:
    """One request of a page by a person."""

    calls: ServiceCalls
    rights: CallerRights
    filters: Filters
    parameters: Mapping[str, str]
    """Parameters of the path, by their names in the table of pages."""
    now: datetime

    def calls_path(self, **changes: str) -> str:
        """Return the path of the calls by the filters of the address, some of them changed; "" for a person that may
        not see them.
        """
        sees_calls = self.rights.may(pb.PERMISSION_RECORDS_READ)
        return f"{CALLS_PATH}{self.filters.kept(**changes)}" if sees_calls else ""

    def model_path(self, record: pb.RequestRecord) -> str:
        """Return the path of the page of the model of a call; "" for an unknown model, and for a person that may not
        see it.
        """
        is_known = record.model and record.reason != pb.ERROR_REASON_MODEL_NOT_FOUND
        return object_path("models", record.model) if is_known and self.rights.may(pb.PERMISSION_PRICES_READ) else ""

    def channel_path(self, channel: str) -> str:
        """Return the path of the page of a channel; "" for no channel, and for a person that may not see it."""
        return object_path("channels", channel) if channel and self.rights.sees_channels else ""


Form: TypeAlias = Mapping[str, str]
"""Fields of a form that was sent, without those of its protection."""


@dataclass(frozen=True)
class Done:
    """End of an act, after which the browser is led to a page."""

    path: str
    """Path of the page, with its query."""
    note: str
    """Key of the words about the act that was done."""


@dataclass(frozen=True)
class Shown:
    """End of an act whose result is shown once, for example a new secret."""

    template: str
    content: object


@dataclass(frozen=True)
class FileContent:
    """Content that is a file."""

    name: str
    media_type: str
    text: str


Act: TypeAlias = "Callable[[Visit, Form], Awaitable[Done | Shown | FileContent]]"


@dataclass(frozen=True)
class LeadElsewhere:
    """Content of a page that is another one for the person."""

    target: str


@runtime_checkable
class Lead(Protocol):
    """Content of a page that may lead the browser to another one."""

    @property
    def target(self) -> str:
        """Path of the other page; "" for this one."""
        ...


@dataclass(frozen=True)
class Page:
    """Row of the table of pages."""

    name: str
    """Name of the page's template, and of its words."""
    path: str
    """Path below `/console`, "" for the first page; `{name}` matches one segment, at the end all that follow."""
    load: Callable[[Visit], Awaitable[object]]
    """Returns the content that the template gets as `content`. Raises UmgError."""
    permission: "pb.Permission.ValueType"
    """Permission that the page requires."""
    group: str = ""
    """Group of the navigation that lists it; "" for a page that others lead to."""
    least: "pb.PermissionExtent.ValueType" = pb.PERMISSION_EXTENT_OWN
    """Least extent of the permission with which the page is listed."""
    is_for_holders: bool = False
    """Whether it is listed for the holders of keys without a role."""
    is_live: bool = False
    """Whether its script reads it again every few seconds. So that this costs little, it has an entity tag, and its
    content is drawn once for all people with the same view: it has no forms that change something.
    """
    letter: str = ""
    """Key that leads to it after `g`; "" for none."""
    acts: Mapping[str, Act] = field(default_factory=lambda: MappingProxyType({}))
    """Acts of its forms, by the values of their field `act`."""
