"""Typed client of the Unified Model Gateway.

`connect` returns a `Client` with one stub for each service of the schema, `connect_sync` the same without `async`; the
messages are in `umg_client.v1`.
"""

from umg_client import v1
from umg_client.client import Client, connect
from umg_client.content import Content, Progress
from umg_client.errors import UmgError
from umg_client.messages import floats, text, tool_calls, user
from umg_client.sync import SyncClient, connect_sync
from umg_client.v1 import ErrorReason

__all__ = [
    "Client",
    "Content",
    "ErrorReason",
    "Progress",
    "SyncClient",
    "UmgError",
    "connect",
    "connect_sync",
    "floats",
    "text",
    "tool_calls",
    "user",
    "v1",
]
