"""Videos: tasks that make them, and tasks that change a finished one."""

import re

from umg_grpc.knowledge.prices import OUTPUT, REQUEST, VIDEO, VIDEO_SECOND
from umg_grpc.operations.operation_row import AttemptTelemetry, Operation
from umg_grpc.v1 import pb
from umg_grpc.wire.core.key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.provider_model_lists import OPENAI_LIST
from umg_grpc.wire.provider_protocols import ProviderProtocol

UNITS = frozenset({REQUEST, VIDEO, VIDEO_SECOND, OUTPUT})
SUBMISSIONS = "umg.client.videos.duration"
"""Histogram of the durations of attempts, which end when the provider has taken a task, and not with its video."""
PROTOCOLS = {
    "vidA": ProviderProtocol(call_path=re.compile(r"/videos$"), model_list=OPENAI_LIST),
    "vidB": ProviderProtocol(key_header=NATIVE_KEY_HEADER),
    **dict.fromkeys(("vidC", "vidD", "vidE", "vidF", "vidG"), ProviderProtocol()),
    "umg_video": ProviderProtocol(call_path=re.compile(r"/v1/video/generations$")),
}
REMIX_PROTOCOLS = {name: PROTOCOLS[name] for name in ("vidA", "umg_video")}

VIDEO_CREATION = Operation(
    value=pb.MODEL_OPERATION_CREATE_VIDEO,
    scope="videos",
    verb="make videos",
    results="videos",
    service="VideoService",
    methods=("CreateVideoTask",),
    protocols=PROTOCOLS,
    listed_as=(
        *("video", "video-gen", "predictLongRunning", "TextToVideo", "ImageToVideo", "MultimodalToVideo"),
        *("VideoEditing", "VideoExtension", "VideoGeneration"),
    ),
    id_part="",
    model_field="",
    units=UNITS,
    telemetry=AttemptTelemetry("create_video", SUBMISSIONS),
    request=pb.CreateVideoTaskRequest,
    response=pb.CreateVideoTaskResponse,
    probe=None,
)
VIDEO_REMIX = Operation(
    value=pb.MODEL_OPERATION_REMIX_VIDEO,
    scope="videos",
    verb="remix videos",
    results="videos",
    service="VideoService",
    methods=("RemixVideoTask",),
    protocols=REMIX_PROTOCOLS,
    listed_as=(),
    id_part="",
    model_field="",
    units=UNITS,
    telemetry=AttemptTelemetry("remix_video", SUBMISSIONS),
    request=pb.RemixVideoTaskRequest,
    response=pb.RemixVideoTaskResponse,
    probe=None,
)
