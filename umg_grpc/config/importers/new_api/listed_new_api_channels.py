"""Channels as new-api lists them, and the list of the properties and models that were not converted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from umg_grpc.config.importers.config_text_builder import ImportedConfig, free_name, mapping, number, sequence
from umg_grpc.config.importers.new_api.channel_types import ChannelType, channel_types
from umg_grpc.config.importers.tracked_source_config import SourceMapping, check_values
from umg_grpc.config.importers.unconverted_settings import reason_of

ENABLED_STATUS = 1
JSON_COLUMNS = ("setting", "settings", "channel_info")
"""Columns that contain further settings, as JSON or as JSON in a text."""


class UnconvertedProperties:
    """Unconverted properties and models: the report has a line for each property, and for each channel's models."""

    def __init__(self) -> None:
        self._channels: dict[tuple[str, str], list[str]] = {}
        self._models: dict[tuple[str, str], list[str]] = {}
        self.missing = 0
        """Number of channels that the API response counts but does not contain."""

    def add(self, setting: str, reason: str, channel: str) -> None:
        """Add an unconverted property of a channel."""
        self._channels.setdefault((setting, reason), []).append(channel)

    def add_model(self, model: str, reason: str, channel: str) -> None:
        """Add an unconverted model of a channel."""
        self._models.setdefault((channel, reason), []).append(model)

    def list_in(self, made: ImportedConfig) -> None:
        """Add a line for each property and model to the report of a converted config."""
        if self.missing > 0:
            made.lose(f"{self.missing} further channels", "the response is one page: `?p=2` and so on has the others")
        for (channel, reason), models in self._models.items():
            noun = "model" if len(models) == 1 else "models"
            made.lose(f"{noun} {_quoted(models)} of channel `{channel}`", reason)
        for (setting, reason), channels in self._channels.items():
            noun = "channel" if len(channels) == 1 else "channels"
            made.lose(f"{setting} of {noun} {_quoted(dict.fromkeys(channels))}", reason)


@dataclass
class SourceRow:
    """Channel of new-api: its columns, and the settings that some columns contain."""

    columns: SourceMapping
    name: str
    known_type: ChannelType | None
    """Row about the type; None for a type that new-api does not have."""
    unconverted: UnconvertedProperties
    settings: dict[str, SourceMapping] = field(default_factory=dict)
    """Settings inside a column, by the name of the column."""

    @property
    def is_enabled(self) -> bool:
        """Whether new-api calls the channel."""
        return not self.columns.has("status") or self.columns.peek_number("status") == ENABLED_STATUS

    def text(self, column: str) -> str:
        """Take a text without white space around it; "" for no value. A list or mapping stays unconverted."""
        value = self.columns.peek(column)
        if isinstance(value, list | dict):
            return ""
        self.columns.take(column)
        return "" if value is None else str(value).strip()

    def lose(self, setting: str, reason: str) -> None:
        """Record that a property is not converted."""
        self.unconverted.add(setting, reason, self.name)

    def list_rest(self) -> None:
        """Record every property that has a value and was not converted."""
        for place, properties in (("", self.columns), *self.settings.items()):
            for key in properties.rest():
                reason = reason_of("new_api", place, key)
                if reason and is_set(properties.peek(key)):
                    self.lose(".".join(filter(None, (place, key))), reason)


def source_rows(text: str, unconverted: UnconvertedProperties) -> list[SourceRow]:
    """Return the channels in a JSON list, or in an API response with the list. Raise ValueError for other text."""
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"expected JSON: {error}") from None
    check_values(decoded)
    data = mapping(decoded).get("data", decoded)
    rows = sequence(mapping(data).get("items", data))
    if not rows or not all(isinstance(row, dict) and "type" in row for row in rows):
        raise ValueError("expected channels of new-api: a JSON list, or the response of GET /api/channel/")
    unconverted.missing = int(number(mapping(data).get("total")) or 0) - len(rows)
    return list(_named(map(mapping, rows), unconverted))


def is_set(value: object) -> bool:
    """Return whether a property has a value that does not mean "not set"; the value may be JSON in a text."""
    if isinstance(value, str) and value.strip():
        decoded = json_of(value)
        return decoded not in (None, "", {}, []) if decoded is not INVALID_JSON else True
    return value not in (None, "", {}, [], 0, False)


INVALID_JSON = object()


def json_of(value: object) -> object:
    """Return the decoded value of a JSON text, `INVALID_JSON` if it is no JSON; a value that is no text unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value) if value.strip() else None
    except (msgspec.DecodeError, RecursionError):
        return INVALID_JSON


def _named(rows: Iterable[Mapping[str, object]], unconverted: UnconvertedProperties) -> Iterator[SourceRow]:
    taken: set[str] = set()
    for columns in rows:
        kind = number(columns.get("type"))
        known = channel_types().get(int(kind)) if kind is not None and kind == int(kind) else None
        written = " ".join(str(columns.get("name") or "").split()) or (known.name if known else "channel")
        name = free_name(written, taken, " ")
        taken.add(name)
        row = SourceRow(SourceMapping(columns), name, known, unconverted)
        for column in ("type", "name", "status"):
            row.columns.take(column)
        for column in JSON_COLUMNS:
            row.settings[column] = _child(row, column)
        yield row


def _child(row: SourceRow, column: str) -> SourceMapping:
    value = row.columns.take(column)
    decoded = json_of(value)
    if not isinstance(decoded, dict) and is_set(value):
        row.lose(column, "expected a JSON object")
    return SourceMapping(mapping(decoded))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def texts(value: object) -> Sequence[str]:
    """Return the comma-separated parts of a text, stripped and without duplicates."""
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in str(value or "").split(",")))))
