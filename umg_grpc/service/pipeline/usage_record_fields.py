"""Names of the fields of usage records, by the units that they count."""

from collections.abc import Mapping

from umg_grpc.knowledge import prices
from umg_grpc.knowledge.prices import Unit

SCHEMA_PACKAGE = "/umg.v1."
"""Beginning of the paths of the gateway's gRPC methods, which usage records leave out."""
UNIT_FIELDS: Mapping[Unit, str] = {
    prices.INPUT_TOKEN: "input_tokens",
    prices.CACHE_READ: "cache_read_tokens",
    prices.CACHE_WRITE: "cache_write_tokens",
    prices.LONG_CACHE_WRITE: "long_cache_write_tokens",
    prices.AUDIO_INPUT: "audio_input_tokens",
    prices.OUTPUT_TOKEN: "output_tokens",
    prices.REASONING_TOKEN: "reasoning_tokens",
    prices.AUDIO_OUTPUT: "audio_output_tokens",
    prices.SEARCH_UNIT: "searches",
    prices.IMAGE_UNIT: "images",
    prices.VIDEO_SECOND: "video_seconds",
    prices.VIDEO_UNIT: "videos",
    prices.IMAGE_INPUT: "image_input_tokens",
    prices.IMAGE_OUTPUT: "image_output_tokens",
    prices.CHARACTER_UNIT: "characters",
    prices.AUDIO_SECOND: "audio_seconds",
}
"""Unit -> field of a usage record that counts it. The unit "request" has no field: each record is one."""
