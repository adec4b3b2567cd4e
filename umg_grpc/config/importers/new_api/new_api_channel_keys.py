"""Keys of new-api's channels: a column contains one or more keys, for some types with an account or a region."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from umg_grpc.config.importers.config_text_builder import literal, mapping, number
from umg_grpc.config.importers.new_api.listed_new_api_channels import ENABLED_STATUS, SourceRow, json_of

BEDROCK_KEY, VERTEX_KEY = "api_key", "api_key"
"""Value of `aws_key_type` and of `vertex_key_type` that means API keys, not the keys of an account."""


@dataclass
class ProviderKeys:
    """Keys of a channel, with the region, project and other properties that the key column contains."""

    keys: list[str] = field(default_factory=list)
    region: str = ""
    """Region of Amazon Bedrock; "" for an unknown one."""
    project: str = ""
    """Project of Google Cloud; "" for an unknown one."""
    headers: dict[str, str] = field(default_factory=dict)
    auth: dict[str, str] | None = None
    are_disabled: bool = False
    """Whether the channel has keys of which new-api uses none."""

    @property
    def value(self) -> str | list[str]:
        """Value of `api_key`; "" for no key."""
        return self.keys[0] if len(self.keys) == 1 else self.keys or ""


def provider_keys(row: SourceRow, kind: str) -> ProviderKeys:
    """Take the keys of a channel. `kind`: form of the keys, from the row about the channel's type."""
    written = _enabled(row, _written(row, kind))
    found = ProviderKeys(are_disabled=written is None)
    match kind:
        case "pair":
            found.keys = [key.replace("|", ":", 1) for key in written or ()]
        case "aws":
            _take_aws(row, found, written or [])
        case "vertex":
            _take_vertex(row, found, written or [])
        case "baidu_v2":
            _take_baidu(row, found, written or [])
        case _:  # all others have keys without parts
            found.keys = written or []
    found.keys = [literal(key) for key in dict.fromkeys(found.keys)]
    return found


def _written(row: SourceRow, kind: str) -> list[str]:
    """Take the keys in the column, which is a JSON list, one JSON object, or a text with one key per line."""
    value = row.columns.peek("key")
    decoded = json_of(value) if isinstance(value, str) and value.strip()[:1] in {"[", "{"} else value
    row.columns.take("key")
    if isinstance(decoded, list):
        return [each if isinstance(each, str) else _text(each) for each in decoded]
    if isinstance(decoded, dict) or kind == "vertex":
        return [value.strip() if isinstance(value, str) else _text(value)] if value else []
    return [line.strip() for line in str(value or "").splitlines() if line.strip()]


def _enabled(row: SourceRow, written: list[str]) -> list[str] | None:
    """Return the keys that new-api uses; None if the channel has several and all are disabled."""
    info = row.settings["channel_info"]
    statuses = mapping(info.peek("multi_key_status_list"))
    if not statuses:
        return written
    info.take("multi_key_status_list")
    used = []
    for position, key in enumerate(written):
        if number(statuses.get(str(position), ENABLED_STATUS)) == ENABLED_STATUS:
            used.append(key)
        else:
            row.lose(f"key {position + 1}", "new-api has disabled it")
    return used if used or not written else None


def _take_aws(row: SourceRow, found: ProviderKeys, written: list[str]) -> None:
    """Take account keys `ID|SECRET|REGION`, or API keys `KEY|REGION`."""
    is_token = row.settings["settings"].peek("aws_key_type") == BEDROCK_KEY
    row.settings["settings"].take("aws_key_type")
    for position, key in enumerate(written):
        *parts, region = key.split("|")
        if len(parts) != (1 if is_token else 2) or not all((*parts, region)):
            expected = "`KEY|REGION`" if is_token else "`ID|SECRET|REGION`"
            row.lose(f"key {position + 1}", f"expected {expected}")
        elif found.region not in {"", region}:
            row.lose(f"key {position + 1}", f"its region is {region}: write a channel for each region")
        else:
            found.keys.append(":".join(parts))
            found.region = region
    if not is_token:
        found.auth = {"kind": "access_key", "scheme": "aws"}


def _take_vertex(row: SourceRow, found: ProviderKeys, written: list[str]) -> None:
    """Take API keys, or the project of the first service account, whose key must be put into a file."""
    settings = row.settings["settings"]
    if settings.peek("vertex_key_type") == VERTEX_KEY:
        found.keys, found.auth = written, {"kind": "query", "parameter": "key"}
    settings.take("vertex_key_type")
    if found.auth is not None:
        return
    accounts = [mapping(json_of(each)) for each in written]
    found.project = next((literal(str(each["project_id"])) for each in accounts if each.get("project_id")), "")
    for position in range(len(written)):
        remedy = "write it to a file, and its name to GOOGLE_APPLICATION_CREDENTIALS or `auth: {kind: service_account}`"
        row.lose("key" if len(written) == 1 else f"key {position + 1}", f"a service account: {remedy}")


def _take_baidu(row: SourceRow, found: ProviderKeys, written: list[str]) -> None:
    """Take keys `KEY|APPID`; the app id is sent in a header."""
    for position, key in enumerate(written):
        token, _, app = key.partition("|")
        if found.keys and found.headers.get("appid", "") != app:
            row.lose(f"key {position + 1}", "its app is another one: write a channel for each app")
            continue
        found.keys.append(token)
        if app:
            found.headers = {"appid": literal(app)}


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, Mapping | list) else str(value or "")
