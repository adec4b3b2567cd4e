"""Filters of the console's pages, which are the query of their addresses and the flags of the command line."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from shlex import quote
from urllib.parse import urlencode

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.base.errors import UmgError
from umg_grpc.base.time_units import UNIT_SECONDS
from umg_grpc.v1 import pb

OFFERED_SPANS = ("1h", "24h", "7d", "30d")
DEFAULT_SPAN = "24h"
SPAN_PATTERN = re.compile(r"([0-9]{1,5})([smhd])")
LIST_NAMES = ("key", "project", "model", "channel", "agent", "user")
"""Filters with several values, which commas separate."""
FLAG_NAMES = {"user": "end-user"}
"""Filter -> flag of the command line, where they differ."""
FAILED_FLAG, PAGE_NAME = "failed", "page"


@dataclass(frozen=True)
class ListPages:
    """Queries of the pages of a list around the present one."""

    older: str
    """Query of the next page; "" on the last one."""
    newest: str
    """Query of the first page; "" on it."""


@dataclass(frozen=True)
class Filters:
    """Filters of one address."""

    query: Mapping[str, str]
    """Parameters of the query that are not empty."""
    start: datetime
    end: datetime | None
    """None for now."""

    @property
    def span(self) -> str:
        """Span before now, for example `24h`; "" for a span that begins at a time."""
        since = self.query.get("since", DEFAULT_SPAN)
        return since if SPAN_PATTERN.fullmatch(since) and self.end is None else ""

    @property
    def failed(self) -> bool:
        """Whether only failed calls are meant."""
        return self.query.get(FAILED_FLAG, "") not in {"", "0"}

    @property
    def page_token(self) -> str:
        """Token of the page of a list; "" for the first one."""
        return self.query.get(PAGE_NAME, "")

    def text(self, name: str) -> str:
        """Return the text of a filter in the address; "" if it is not set, but for the span."""
        return self.query.get(name, DEFAULT_SPAN if name == "since" else "")

    def values(self, name: str) -> list[str]:
        """Return the values of a filter; none if it is not set."""
        return [value.strip() for value in self.query.get(name, "").split(",") if value.strip()]

    def set_names(self) -> list[str]:
        """Return the names of the filters that restrict a list, without the span."""
        return [name for name in (*LIST_NAMES, "tag", "reason", FAILED_FLAG) if self.query.get(name)]

    def tags(self) -> dict[str, str]:
        """Return the tags that keys must have. Raise UmgError(INVALID_FIELD) for one without a value."""
        found = {}
        for each in self.values("tag"):
            name, separator, value = each.partition("=")
            if not separator:
                message = f"expected NAME=VALUE in `tag`, got `{each[:100]}`"
                raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="tag")
            found[name] = value
        return found

    def changed(self, **changes: str) -> str:
        """Return the query of the address with changed filters, `""` to remove one; it begins at the first page."""
        query = {name: value for name, value in self.query.items() if name != PAGE_NAME} | changes
        shown = {name: value for name, value in query.items() if value}
        return f"?{urlencode(shown, safe=',:=*')}" if shown else "?"

    def pages(self, next_page_token: str) -> ListPages:
        """Return the pages around the present one, by the token of the next one."""
        older = self.changed(page=next_page_token) if next_page_token else ""
        return ListPages(older, self.changed() if self.page_token else "")

    def kept(self, **changes: str) -> str:
        """Return the query with the filters that other pages have, too, and with changed ones."""
        names = ("since", "until", *LIST_NAMES, "tag", FAILED_FLAG)
        shown = {name: value for name, value in self.query.items() if name in names} | changes
        return f"?{urlencode(shown, safe=',:=*')}" if shown else ""

    def command(self, command: str, *extra: str) -> str:
        """Return the command line that prints the same."""
        return " ".join((command, *extra, *self._flags()))

    def _flags(self) -> Iterator[str]:
        yield f"--since {quote(self.query.get('since', DEFAULT_SPAN))}"
        if until := self.query.get("until"):
            yield f"--until {quote(until)}"
        for name in LIST_NAMES:
            if value := self.query.get(name):
                yield f"--{FLAG_NAMES.get(name, name)} {quote(value)}"
        if self.failed:
            yield "--failed"

    def start_time(self) -> Timestamp:
        """Return the beginning of the span for a request."""
        return timestamp_of(self.start)

    def end_time(self) -> Timestamp | None:
        """Return the end of the span for a request; None for now."""
        return None if self.end is None else timestamp_of(self.end)


def read_filters(query: Mapping[str, str], now: datetime) -> Filters:
    """Return the filters of an address. Raise UmgError(INVALID_FIELD) for a time that is none."""
    given = {name: value.strip() for name, value in query.items() if value.strip()}
    start = _time(given.get("since", DEFAULT_SPAN), "since", now)
    end = _time(given["until"], "until", now) if "until" in given else None
    if start >= (end or now):
        message = "`since` must be before `until`"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="since")
    return Filters(given, start, end)


def _time(text: str, name: str, now: datetime) -> datetime:
    if match := SPAN_PATTERN.fullmatch(text):
        time = now - timedelta(seconds=int(match[1]) * UNIT_SECONDS[match[2]])
        # a whole minute, whose calls totals have
        return time if match[2] == "s" else time.replace(second=0, microsecond=0)
    if text == "month":
        return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except (OverflowError, ValueError):  # also a time before the year 1 of UTC
        message = f"expected an ISO time or a span such as 24h in `{name}`, got `{text[:100]}`"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=name) from None


def timestamp_of(time: datetime) -> Timestamp:
    """Return a time for a request."""
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
