"""Persistent storage: one database, which is SQLite in the data dir or, for several nodes, PostgreSQL."""

from umg_grpc.store.database import Store, StoreError, open_store

__all__ = ["Store", "StoreError", "open_store"]
