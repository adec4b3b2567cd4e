"""Images: made from a prompt, and edited."""

import re
from dataclasses import replace

from umg_grpc.knowledge.price_calculation import IMAGE_OUTPUT, IMAGE_UNIT, REQUEST_UNIT
from umg_grpc.operations.operation_row import AttemptTelemetry, Operation
from umg_grpc.v1 import pb
from umg_grpc.wire.core.provider_key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.provider_model_lists import GEMINI_LIST, OPENAI_LIST
from umg_grpc.wire.provider_protocols import ProviderProtocol

IMAGE_UNITS = frozenset({REQUEST_UNIT, IMAGE_UNIT, IMAGE_OUTPUT})
CALL_PATH = re.compile(r"/images(?:/(?:generations|edits|variations))?$")
PROVIDER_PROTOCOLS = {
    "images": ProviderProtocol(call_path=CALL_PATH, model_list=OPENAI_LIST),
    "umg_images": ProviderProtocol(call_path=CALL_PATH),
    "native_images": ProviderProtocol(key_header=NATIVE_KEY_HEADER, model_list=GEMINI_LIST),
    "ark_images": ProviderProtocol(call_path=re.compile(r"/images/generations$"), model_list=OPENAI_LIST),
    "dashscope_images": ProviderProtocol(),
}

IMAGE_GENERATION = Operation(
    value=pb.MODEL_OPERATION_GENERATE_IMAGE,
    scope="images",
    verb="make images",
    results="images",
    service="ImageService",
    methods=("GenerateImage", "StreamGenerateImage"),
    protocols=PROVIDER_PROTOCOLS,
    listed_as=("image", "image-gen", "predict", "TextToImage", "ImageGeneration", "FLUMINA_BASE_MODEL"),
    id_part="",
    model_field="",
    units=IMAGE_UNITS,
    telemetry=AttemptTelemetry("generate_content", "umg.client.images.duration"),
    request=pb.GenerateImageRequest,
    response=pb.GenerateImageResponse,
    probe=None,
)
IMAGE_EDITING = replace(
    IMAGE_GENERATION,
    value=pb.MODEL_OPERATION_EDIT_IMAGE,
    verb="",
    methods=(),  # a request with input images is an edit
    listed_as=("image", "image-gen", "ImageToImage"),
    telemetry=None,
)
