"""Videos: tasks that make them, and tasks that change a finished one."""

from umg_grpc.knowledge.prices import OUTPUT, REQUEST, VIDEO, VIDEO_SECOND
from umg_grpc.operations.operation_row import Operation
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_protocols import REMIX_PROTOCOLS, VIDEO_PROTOCOLS

UNITS = frozenset({REQUEST, VIDEO, VIDEO_SECOND, OUTPUT})

VIDEO_CREATION = Operation(
    value=pb.MODEL_OPERATION_CREATE_VIDEO,
    scope="videos",
    verb="make videos",
    service="VideoService",
    methods=("CreateVideoTask",),
    protocols=VIDEO_PROTOCOLS,
    units=UNITS,
    telemetry=None,
    request=pb.CreateVideoTaskRequest,
    response=pb.CreateVideoTaskResponse,
    probe=None,
)
VIDEO_REMIX = Operation(
    value=pb.MODEL_OPERATION_REMIX_VIDEO,
    scope="videos",
    verb="remix videos",
    service="VideoService",
    methods=("RemixVideoTask",),
    protocols=REMIX_PROTOCOLS,
    units=UNITS,
    telemetry=None,
    request=pb.RemixVideoTaskRequest,
    response=pb.RemixVideoTaskResponse,
    probe=None,
)
