"""Conditional and range requests for files, for example `If-None-Match` and `Range` (RFC 9110, sections 13 and 14)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime

from aiohttp import hdrs, web

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

RANGE_HEADER = re.compile(
    r"bytes=(?:(?P<first>[0-9]{1,18})-(?P<last>[0-9]{1,18})?|-(?P<suffix>[0-9]{1,18}))", re.IGNORECASE
)


@dataclass(frozen=True)
class Representation:
    """Properties of a file (size, entity tag, modification time) for conditional and range requests."""

    size: int
    etag: str
    """Strong entity tag, without quotes."""
    modify_time: datetime

    @property
    def headers(self) -> dict[str, str]:
        """Headers that describe the file in every response: `ETag`, `Last-Modified` and `Accept-Ranges`."""
        return {
            hdrs.ETAG: f'"{self.etag}"',
            hdrs.LAST_MODIFIED: format_datetime(self.modify_time.astimezone(UTC), usegmt=True),
            hdrs.ACCEPT_RANGES: "bytes",
        }

    def is_unchanged(self, request: web.BaseRequest) -> bool:
        """Return whether the client's copy of the file is current, by `If-None-Match` or else `If-Modified-Since`."""
        if (known := request.if_none_match) is not None:
            return any(tag.value in (self.etag, "*") for tag in known)
        since = request.if_modified_since
        return since is not None and self.modify_time.replace(microsecond=0) <= since

    def select(self, headers: Mapping[str, str]) -> tuple[int, int] | None:
        """Return the byte range that a request's `Range` header selects: its first byte and its exclusive end. None
        selects the whole file: if the header is missing, invalid or has several ranges, or `If-Range` names another
        version. Raise UmgError(RANGE_NOT_SATISFIABLE) for a range that begins after the end of the file.
        """
        wanted = RANGE_HEADER.fullmatch(headers.get(hdrs.RANGE, "").replace(" ", ""))
        if wanted is None or not self._matches(headers.get(hdrs.IF_RANGE)):
            return None
        if wanted["suffix"] is not None:
            start, end = max(0, self.size - int(wanted["suffix"])), self.size
        else:
            start = int(wanted["first"])
            last = int(wanted["last"]) if wanted["last"] is not None else self.size
            if last < start:
                return None
            end = min(last + 1, self.size)
        if start >= self.size:
            message = f"the range begins after the end of the file, which has {self.size} bytes"
            raise UmgError(pb.ERROR_REASON_RANGE_NOT_SATISFIABLE, message, total_bytes=str(self.size))
        return start, end

    def _matches(self, if_range: str | None) -> bool:
        return if_range is None or if_range.strip() in {f'"{self.etag}"', self.headers[hdrs.LAST_MODIFIED]}
