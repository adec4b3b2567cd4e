"""Words by which providers' model lists state a model's operations, collected from the rows."""

from umg_grpc.operations import OPERATION_ROWS
from umg_grpc.wire.model_list_entries import ListedOperations

_WORDS = dict.fromkeys(word.lower() for row in OPERATION_ROWS for word in row.listed_as)
_PARTS = sorted((row for row in OPERATION_ROWS if row.id_part), key=lambda row: len(row.id_part), reverse=True)

LISTED_OPERATIONS = ListedOperations(
    words={
        word: tuple(row.value for row in OPERATION_ROWS if word in map(str.lower, row.listed_as)) for word in _WORDS
    },
    id_parts={row.id_part: row.value for row in _PARTS},  # the longest one first
)
