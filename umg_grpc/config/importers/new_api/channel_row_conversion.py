"""Conversion of new-api's channels: one becomes several if its models need several providers or addresses."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from umg_grpc.config.importers.config_text_builder import ImportedChannel, ImportedConfig, literal, mapping
from umg_grpc.config.importers.new_api.channel_types import operations_of
from umg_grpc.config.importers.new_api.listed_new_api_channels import INVALID_JSON, SourceRow, is_set, json_of, texts
from umg_grpc.config.importers.new_api.new_api_connections import RowConnection, Source, connection, source_of
from umg_grpc.config.importers.unconverted_settings import reason_of
from umg_grpc.knowledge.provider_presets import Provider

DISABLED_COMMENTS: Mapping[float | None, str] = {
    2: "disabled by hand in new-api",
    3: "disabled by new-api after errors",
}
"""Status of a disabled channel -> comment on it."""
SOCKS_COMMENT = "not used, since calls through its SOCKS proxy are not made here: set `proxy` to an HTTP proxy"
TEMPLATE_PART = re.compile(r"\{[^}]*\}|^(?:\*|re:|regex:)")
"""Part of a header's name or value that new-api replaces in each call."""
LATIN_CHARACTER = re.compile(r"[A-Za-z0-9]")
NOT_IN_VARIABLES = re.compile(r"[^A-Z0-9]+")
OPENAI_TYPE = 1
"""Number of the channel type that sends an organization."""


def add_channel(made: ImportedConfig, row: SourceRow, *, has_weights: bool) -> None:
    """Add the channels for a channel of new-api, and list its properties that were not converted.

    `has_weights`: whether another channel of the same priority has a weight.
    """
    known = row.known_type
    if known is None or known.reason:
        name = f" ({known.name})" if known is not None else ""
        reason = (
            known.reason if known is not None else "no type of new-api: write a channel with `protocols` and `base_url`"
        )
        made.lose(f"channel `{row.name}` of type {row.columns.peek('type')}{name}", reason)
        return
    source = source_of(row, known)
    details, disabled = _details(source, has_weights=has_weights)
    if source.keys.are_disabled:
        disabled = "not used, since new-api has disabled all of its keys"
    if not row.is_enabled:
        disabled = DISABLED_COMMENTS.get(row.columns.peek_number("status"), "disabled in new-api")
    channels: list[ImportedChannel] = []
    for public, upstream in _models(row):
        operations = operations_of(known.type, upstream)
        found = operations if isinstance(operations, str) else connection(source, upstream, operations)
        if isinstance(found, str):
            row.unconverted.add_model(public, found, row.name)
            continue
        keys = {**found.keys, **_credentials(source, found), **details}
        channel = next((each for each in channels if each.keys == keys), None)
        if channel is None:
            name = row.name if LATIN_CHARACTER.search(row.name) else known.name
            channel = made.new_channel(f"{name}-{found.label}" if channels else name, keys)
            channel.disabled = disabled
            if channel.name.replace("-", " ") not in f"{row.name} {found.label}".replace("-", " "):
                channel.comments.append(f"named {row.name} in new-api")
            if not source.keys.are_disabled:
                channel.comments += _comments(source, found)
            channels.append(channel)
        channel.add(public, found.model, found.family)
    row.list_rest()


def _models(row: SourceRow) -> list[tuple[str, str]]:
    """Take (public id, provider's id) of each model of the channel."""
    models = texts(row.text("models"))
    decoded = json_of(row.columns.peek("model_mapping"))
    renamed: Mapping[str, object] = {}
    if decoded is not INVALID_JSON and (decoded is None or isinstance(decoded, dict)):
        row.columns.take("model_mapping")
        renamed = mapping(decoded)
    if not models:
        row.lose("models", "it lists none, so that it serves none")
    return [(model, _upstream(renamed, model)) for model in models]


def _upstream(renamed: Mapping[str, object], model: str) -> str:
    seen = {model}
    while (following := renamed.get(model)) and str(following) not in seen:
        model = str(following)
        seen.add(model)
    return model


def _details(source: Source, *, has_weights: bool) -> tuple[dict[str, object], str]:
    """Take the channel's properties besides address and credentials, and return them with a comment ("" if there is
    none).
    """
    row = source.row
    details: dict[str, object] = {}
    disabled = ""
    if headers := _headers(source):
        details["headers"] = headers
    settings = row.settings["setting"]
    proxy = str(settings.peek("proxy") or "").strip()
    if urlsplit_scheme(proxy) in {"http", "https"}:
        settings.take("proxy")
        details["proxy"] = literal(proxy)
    elif proxy:
        disabled = SOCKS_COMMENT
    if priority := row.columns.number("priority"):
        details["priority"] = -int(priority)  # there the highest comes first
    weight = row.columns.number("weight")
    if weight:
        details["weight"] = int(weight)
    elif has_weights:
        details["weight"] = 0
    if row.columns.number("auto_ban") == 0:
        row.lose("auto_ban", reason_of("new_api", "", "auto_ban"))
    if texts(row.columns.peek("group")) in {(), ("default",)}:
        row.columns.take("group")
    return details, disabled


def urlsplit_scheme(address: str) -> str:
    """Return the scheme of an address; "" for text that is no address."""
    try:
        return urlsplit(address).scheme
    except ValueError:
        return ""


def _headers(source: Source) -> dict[str, str]:
    """Take the headers that new-api adds to every call of a channel, and list headers that differ between calls."""
    row = source.row
    decoded = json_of(row.columns.peek("header_override"))
    headers: dict[str, str] = {}
    if isinstance(decoded, dict):
        written = {str(name): value for name, value in decoded.items()}
        headers = {
            name: literal(value)
            for name, value in written.items()
            if not TEMPLATE_PART.search(name) and isinstance(value, str) and not TEMPLATE_PART.search(value)
        }
        if len(headers) == len(written):
            row.columns.take("header_override")
    if source.type.type == OPENAI_TYPE and (organization := row.text("openai_organization")):
        headers["OpenAI-Organization"] = literal(organization)
    return headers


def _credentials(source: Source, found: RowConnection) -> dict[str, object]:
    keys = source.keys
    credentials: dict[str, object] = {}
    if keys.value:
        if keys.auth is not None:
            credentials["auth"] = keys.auth
        credentials["api_key"] = keys.value
    elif names := _pair(source, found.preset):
        credentials["api_key"] = ":".join(f"${{{name}}}" for name in names)
    elif source.type.needs_key and found.preset is None:
        credentials["api_key"] = f"${{{_variable(source)}}}"
    if keys.headers:
        credentials["headers"] = keys.headers
    return credentials


def _pair(source: Source, preset: Provider | None) -> list[str]:
    keys = preset.keys if preset is not None and source.type.kind == "pair" else ()
    return next((names.split(":") for names in keys if ":" in names), [])


def _variable(source: Source) -> str:
    word = NOT_IN_VARIABLES.sub("_", source.row.name.upper()).strip("_") or source.type.name.upper()
    return f"{word if word[0].isalpha() else f'CHANNEL_{word}'}_API_KEY"


def _comments(source: Source, found: RowConnection) -> Iterable[str]:
    comments = list[str]()
    if source.type.comment and source.address in {"", source.type.base_url}:
        comments.append(source.type.comment)
    if source.keys.value:
        return comments
    preset = found.preset
    needs_key = preset.needs_key if preset is not None else source.type.needs_key
    variables = preset.variables_text if preset is not None else _variable(source)
    if needs_key:
        variables = " and ".join(_pair(source, preset)) or variables
        comments.append(f"the export has no key: set {variables}, or `api_key`")
    elif preset is not None and preset.uses_service_account:
        comments.append(f"set {variables} to the file with the key of the service account")
    return comments


def weighted_priorities(rows: Iterable[SourceRow]) -> frozenset[float]:
    """Return the priorities that have at least one enabled channel with a weight."""
    return frozenset(
        row.columns.peek_number("priority") or 0
        for row in rows
        if row.is_enabled and is_set(row.columns.peek("weight"))
    )
