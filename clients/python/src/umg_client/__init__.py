"""Typed async client of the Unified Model Gateway.

`connect` returns a `Client` with one stub for each service of the schema; the messages are in `umg_client.v1`.
"""

from umg_client import v1
from umg_client.client import Client, connect
from umg_client.errors import UmgError
from umg_client.v1 import ErrorReason

__all__ = ["Client", "ErrorReason", "UmgError", "connect", "v1"]
