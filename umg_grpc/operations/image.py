"""Images: made from a prompt, and edited."""

from umg_grpc.knowledge.prices import IMAGE, IMAGE_OUTPUT, REQUEST
from umg_grpc.operations.operation_row import AttemptTelemetry, Operation
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_protocols import IMAGE_PROTOCOLS

UNITS = frozenset({REQUEST, IMAGE, IMAGE_OUTPUT})

IMAGE_GENERATION = Operation(
    value=pb.MODEL_OPERATION_GENERATE_IMAGE,
    scope="images",
    verb="make images",
    service="ImageService",
    methods=("GenerateImage", "StreamGenerateImage"),
    protocols=IMAGE_PROTOCOLS,
    units=UNITS,
    telemetry=AttemptTelemetry("generate_content", "umg.client.images.duration"),
    request=pb.GenerateImageRequest,
    response=pb.GenerateImageResponse,
    probe=None,
)
IMAGE_EDITING = Operation(
    value=pb.MODEL_OPERATION_EDIT_IMAGE,
    scope="images",
    verb="",
    service="ImageService",
    methods=(),  # a request with input images is an edit
    protocols=IMAGE_PROTOCOLS,
    units=UNITS,
    telemetry=None,
    request=pb.GenerateImageRequest,
    response=pb.GenerateImageResponse,
    probe=None,
)
