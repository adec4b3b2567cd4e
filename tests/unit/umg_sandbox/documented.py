"""Models of the simulated provider of the built-in config."""

from umg_grpc.config import built_in
from umg_grpc.routing import Router
from umg_grpc.v1 import pb

_ROUTER = Router(built_in())

TEXT_MODELS = tuple(
    target.model
    for model in _ROUTER.models()
    for target in _ROUTER.targets(model.id)
    if "sandbox" in target.channel.protocols and pb.MODEL_OPERATION_GENERATE in target.operations
)
