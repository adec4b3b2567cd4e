"""What outlives the process: one database, SQLite in the data dir or PostgreSQL for many nodes, behind one code."""

from umg_grpc.store.database import Store, StoreError, open_store

__all__ = ["Store", "StoreError", "open_store"]
