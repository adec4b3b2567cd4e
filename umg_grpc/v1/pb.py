"""Every message and enum of `umg.v1`."""

from umg.v1.every_pb2 import *  # noqa: F403
