"""Persistent storage: the database (SQLite in the data directory or, for several machines, PostgreSQL), files and
Redis. Names of this package are loaded at their first use: modules that use only files import no database library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from umg_grpc.store.database import Store, open_store
    from umg_grpc.store.database_constants import StoreError

__all__ = ["Store", "StoreError", "open_store"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "database_constants" if name == "StoreError" else "database"
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found
