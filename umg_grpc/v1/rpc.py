"""Every stub, servicer and registration function of `umg.v1`."""

from umg.v1.every_pb2_grpc import *  # noqa: F403
