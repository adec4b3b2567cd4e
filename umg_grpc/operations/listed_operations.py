"""Words by which providers' model lists state the operations of models, from the rows."""

from umg_grpc.operations import ROWS
from umg_grpc.wire.listed_models import ListedOperations

_WORDS = dict.fromkeys(word.lower() for row in ROWS for word in row.listed_as)
_PARTS = sorted((row for row in ROWS if row.id_part), key=lambda row: len(row.id_part), reverse=True)

LISTED_OPERATIONS = ListedOperations(
    words={word: tuple(row.value for row in ROWS if word in map(str.lower, row.listed_as)) for word in _WORDS},
    id_parts={row.id_part: row.value for row in _PARTS},  # the longest one first
)
