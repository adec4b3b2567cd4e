"""Names of the fields of usage records, by the units that they count."""

from collections.abc import Mapping

from umg_grpc.knowledge import price_calculation
from umg_grpc.knowledge.price_calculation import Unit

SCHEMA_PACKAGE = "/umg.v1."
"""Beginning of the paths of the gateway's gRPC methods, which usage records leave out."""
UNIT_FIELDS: Mapping[Unit, str] = {
    price_calculation.INPUT_TOKEN: "input_tokens",
    price_calculation.CACHE_READ: "cache_read_tokens",
    price_calculation.CACHE_WRITE: "cache_write_tokens",
    price_calculation.LONG_CACHE_WRITE: "long_cache_write_tokens",
    price_calculation.AUDIO_INPUT: "audio_input_tokens",
    price_calculation.OUTPUT_TOKEN: "output_tokens",
    price_calculation.REASONING_TOKEN: "reasoning_tokens",
    price_calculation.AUDIO_OUTPUT: "audio_output_tokens",
    price_calculation.SEARCH_UNIT: "searches",
    price_calculation.IMAGE_UNIT: "images",
    price_calculation.VIDEO_SECOND: "video_seconds",
    price_calculation.VIDEO_UNIT: "videos",
    price_calculation.IMAGE_INPUT: "image_input_tokens",
    price_calculation.IMAGE_OUTPUT: "image_output_tokens",
    price_calculation.CHARACTER_UNIT: "characters",
    price_calculation.AUDIO_SECOND: "audio_seconds",
}
"""Unit -> field of a usage record that counts it. The unit "request" has no field: each record is one."""
