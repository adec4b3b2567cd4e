"""Servicer of `umg.v1.AdminService`: the class in `administration.py`, with requests checked by the schema."""

from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.service.servicers.administration import Administration, ChannelList
from umg_grpc.store import Store
from umg_grpc.v1 import rpc


class AdminServicer(Administration, rpc.AdminServiceServicer):
    """Servicer of `umg.v1.AdminService`: keys, usage, records of calls, channels."""

    def __init__(self, store: Store, channels: ChannelList, *, refuses_limits: bool) -> None:
        """Create a servicer. `refuses_limits`: reject keys with limits, which workers count separately."""
        super().__init__(store, channels, check, refuses_limits=refuses_limits)
