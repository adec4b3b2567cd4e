"""Requests and responses of the operations that have a response at once, for the parts that serve all of them."""

from typing import TypeAlias

from umg_grpc.v1 import pb

CanonicalRequest: TypeAlias = pb.GenerateRequest | pb.EmbedRequest | pb.RerankRequest | pb.GenerateImageRequest
CanonicalResponse: TypeAlias = pb.GenerateResponse | pb.EmbedResponse | pb.RerankResponse | pb.GenerateImageResponse
