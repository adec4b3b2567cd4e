"""Conversion of new-api's channels, as its admin API lists them (`GET /api/channel/`), into a config. Pure."""

from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.converted_config_check import checked
from umg_grpc.config.importers.new_api.channel_row_conversion import add_channel, weighted_priorities
from umg_grpc.config.importers.new_api.listed_new_api_channels import UnconvertedProperties, source_rows


def from_new_api(text: str) -> ImportedConfig:
    """Convert the list of channels, or the API response with it. Raise ValueError if no channel can be converted."""
    made, unconverted = ImportedConfig("new-api"), UnconvertedProperties()
    rows = source_rows(text, unconverted)
    weighted = weighted_priorities(rows)
    for row in rows:
        add_channel(made, row, has_weights=(row.columns.peek_number("priority") or 0) in weighted)
    unconverted.list_in(made)
    return checked(made)
