"""Videos: tasks that make a video, and tasks that change a finished video."""

import re

from umg_grpc.knowledge.price_calculation import OUTPUT_TOKEN, REQUEST_UNIT, VIDEO_SECOND, VIDEO_UNIT
from umg_grpc.operations.operation_row import AttemptTelemetry, Operation
from umg_grpc.v1 import pb
from umg_grpc.wire.core.provider_key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.provider_model_lists import OPENAI_LIST
from umg_grpc.wire.provider_protocols import ProviderProtocol

VIDEO_UNITS = frozenset({REQUEST_UNIT, VIDEO_UNIT, VIDEO_SECOND, OUTPUT_TOKEN})
SUBMISSION_DURATION = "umg.client.videos.duration"
"""Histogram of attempt durations. An attempt ends when the provider has accepted the task, not with its video."""
PROVIDER_PROTOCOLS = {
    "vidA": ProviderProtocol(call_path=re.compile(r"/videos$"), model_list=OPENAI_LIST),
    "vidB": ProviderProtocol(key_header=NATIVE_KEY_HEADER),
    **dict.fromkeys(("vidC", "vidD", "vidE", "vidF", "vidG"), ProviderProtocol()),
    "umg_video": ProviderProtocol(call_path=re.compile(r"/v1/video/generations$")),
}
REMIX_PROTOCOLS = {name: PROVIDER_PROTOCOLS[name] for name in ("vidA", "umg_video")}

VIDEO_CREATION = Operation(
    value=pb.MODEL_OPERATION_CREATE_VIDEO,
    scope="videos",
    verb="make videos",
    results="videos",
    service="VideoService",
    methods=("CreateVideoTask",),
    protocols=PROVIDER_PROTOCOLS,
    listed_as=(
        *("video", "video-gen", "predictLongRunning", "TextToVideo", "ImageToVideo", "MultimodalToVideo"),
        *("VideoEditing", "VideoExtension", "VideoGeneration"),
    ),
    id_part="",
    model_field="",
    units=VIDEO_UNITS,
    telemetry=AttemptTelemetry("create_video", SUBMISSION_DURATION),
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
    units=VIDEO_UNITS,
    telemetry=AttemptTelemetry("remix_video", SUBMISSION_DURATION),
    request=pb.RemixVideoTaskRequest,
    response=pb.RemixVideoTaskResponse,
    probe=None,
)
