"""Facts about settings of other gateways that are not converted, as rows with their sources."""

from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Gateway = Literal["litellm", "new_api"]


class SettingRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that are not converted, with the reason."""

    place: str
    """Section of LiteLLM's file (`entry`: an entry of its `model_list`) or column of new-api that contains the
    settings. "" for the top of the file, and for the columns themselves.
    """
    keys: tuple[str, ...]
    """Names of settings, or patterns of names with `*`."""
    reason: str
    """Reason; "" for a setting without an effect on calls, which is not listed."""
    source: str
    as_of: str


@cache
def setting_rows(gateway: Gateway) -> tuple[SettingRow, ...]:
    """Return all rows about a gateway."""
    return tuple(read_rows(f"{gateway}_settings", SettingRow))


def reason_of(gateway: Gateway, place: str, key: str) -> str:
    """Return the reason why a setting is not converted, from the first row for its section and its key."""
    return next(
        row.reason
        for row in setting_rows(gateway)
        if row.place == place and any(fnmatchcase(key, pattern) for pattern in row.keys)
    )
