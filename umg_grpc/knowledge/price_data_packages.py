"""Public packages from whose data `make knowledge` writes the generated rows. They are never installed or imported."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class Package(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Package whose wheel contains data."""

    name: str
    version: str
    member: str
    """File in its wheel that has the data."""
    data: str
    """Name of the data file that is made from it."""
    licence: str
    source: str
    as_of: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


DATA_PACKAGES: Mapping[str, Package] = MappingProxyType({row.data: row for row in read_rows("packages", Package)})
