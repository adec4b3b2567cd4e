"""Reading of the package's data files: JSON arrays with a row on each line. The row of a fact has `source`, the
document or report of the fact, and `as_of`, the date on which it was read.
"""

from pathlib import Path
from typing import TypeVar

import msgspec

DATA_FOLDER = Path(__file__).parent / "data"

Row = TypeVar("Row")


def read_rows(name: str, row: type[Row]) -> list[Row]:
    """Return the rows of the data file `name`.json. Raise msgspec.ValidationError for an unknown or missing member."""
    return msgspec.json.decode((DATA_FOLDER / f"{name}.json").read_bytes(), type=list[row])  # type: ignore[valid-type]
