"""Persistent storage: one database, which is SQLite in the data dir or, for several nodes, PostgreSQL.

The names of this package are loaded by the first use of one: modules that use only files import no database library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from umg_grpc.store.database import Store, StoreError, open_store

__all__ = ["Store", "StoreError", "open_store"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module("umg_grpc.store.database"), name)
    globals()[name] = found
    return found
