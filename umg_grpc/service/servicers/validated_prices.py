"""Servicer of `umg.v1.ModelPriceService`: the class in `model_price_administration.py`, registered with gRPC."""

from umg_grpc.service.channels.channel_source import ChannelSource
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.servicers.model_price_administration import ModelPriceAdministration
from umg_grpc.store import Store
from umg_grpc.v1 import rpc


class ModelPriceServicer(ModelPriceAdministration, rpc.ModelPriceServiceServicer):
    """Servicer of `umg.v1.ModelPriceService`: prices of models."""

    def __init__(self, store: Store, source: ChannelSource) -> None:
        super().__init__(store, source, validate)
