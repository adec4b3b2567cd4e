"""Conversion of texts for PostgreSQL, which stores every character except NUL."""

from psycopg.abc import Buffer
from psycopg.types.string import StrDumperUnknown

NUL_CHARACTER, REPLACEMENT_CHARACTER = "\0", "\N{REPLACEMENT CHARACTER}"


class StorableTextDumper(StrDumperUnknown):
    """Dumper of texts that replaces NUL: an id with NUL from a caller would cause an error of the database."""

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace(NUL_CHARACTER, REPLACEMENT_CHARACTER))
