"""Responses about models in each shape, as the codecs encode them, for the OpenAPI document."""

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.v1 import pb
from umg_grpc.wire.model_lists import DEFAULT_SHAPE, MODEL_LISTS, SHAPES_OF_DEFAULT_PATH
from umg_grpc.wire.openapi_schemas.encoded_bodies import SAMPLE_TEXT, EncodedBody

SAMPLE_TIME = Timestamp(seconds=1)

_MODELS = [
    pb.Model(id=SAMPLE_TEXT, create_time=SAMPLE_TIME),
    pb.Model(
        id=SAMPLE_TEXT,
        create_time=SAMPLE_TIME,
        family="famC",
        operations=[pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_EMBED],
        input_token_limit=1,
        output_token_limit=1,
        retire_time=SAMPLE_TIME,
        capabilities=pb.ModelCapabilities(tools=True, reasoning=pb.REASONING_CONTROL_LEVEL),
        embedding=pb.ModelEmbedding(default_dimensions=1),
        sampling=pb.ModelSampling(temperature=0.5, max_temperature=0.5, top_p=0.5, top_k=1),
    ),
    pb.Model(id=SAMPLE_TEXT, create_time=SAMPLE_TIME, operations=[pb.MODEL_OPERATION_GENERATE]),
]
"""Models without facts, with all facts, and without limits."""
_PAGES = [pb.ListModelsResponse(), pb.ListModelsResponse(models=_MODELS, next_page_token=SAMPLE_TEXT)]


def shapes_of(path_format: str) -> tuple[str, ...]:
    """Return the formats of the responses of a path: several for the path of models whose callers select a shape."""
    return SHAPES_OF_DEFAULT_PATH if path_format == DEFAULT_SHAPE else (path_format,)


def model_list(path_format: str) -> tuple[EncodedBody, ...]:
    """Return the responses of a path that lists models."""
    return tuple(_model_list(shape) for shape in shapes_of(path_format))


def model(path_format: str) -> tuple[EncodedBody, ...]:
    """Return the responses of a path that describes one model."""
    return tuple(_model(shape) for shape in shapes_of(path_format))


def _model_list(shape: str) -> EncodedBody:
    encode, request = MODEL_LISTS[shape].encode_list, pb.ListModelsRequest()
    description = f"Page of a model list in the shape `{shape}`."
    return EncodedBody(f"{shape}.Models", description, lambda: [encode(page, request) for page in _PAGES])


def _model(shape: str) -> EncodedBody:
    encode, description = MODEL_LISTS[shape].encode_model, f"Model in the shape `{shape}`."
    return EncodedBody(f"{shape}.Model", description, lambda: [encode(sample) for sample in _MODELS])
