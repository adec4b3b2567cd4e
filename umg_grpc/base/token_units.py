"""Units of tokens: of the input of calls, in all kinds, and of their output."""

from typing import Final

from umg_grpc.v1 import pb

INPUT_UNITS: Final = (
    pb.BILLABLE_UNIT_INPUT_TOKEN,
    pb.BILLABLE_UNIT_CACHE_READ_TOKEN,
    pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN,
    pb.BILLABLE_UNIT_LONG_CACHE_WRITE_TOKEN,
    pb.BILLABLE_UNIT_AUDIO_INPUT_TOKEN,
    pb.BILLABLE_UNIT_IMAGE_INPUT_TOKEN,
)
OUTPUT_UNITS: Final = (
    pb.BILLABLE_UNIT_OUTPUT_TOKEN,
    pb.BILLABLE_UNIT_REASONING_TOKEN,
    pb.BILLABLE_UNIT_AUDIO_OUTPUT_TOKEN,
    pb.BILLABLE_UNIT_IMAGE_OUTPUT_TOKEN,
)
INPUT_COLUMNS, OUTPUT_COLUMNS = (
    tuple(f"{pb.BillableUnit.Name(unit).removeprefix('BILLABLE_UNIT_').lower()}s" for unit in units)
    for units in (INPUT_UNITS, OUTPUT_UNITS)
)
"""Names of their counts, for example `input_tokens`."""
