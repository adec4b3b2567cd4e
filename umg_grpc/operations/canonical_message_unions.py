"""Canonical requests and responses of operations with a complete response, for code that serves all operations."""

from typing import TypeAlias

from umg_grpc.v1 import pb

CanonicalRequest: TypeAlias = pb.GenerateRequest | pb.EmbedRequest | pb.RerankRequest | pb.GenerateImageRequest
CanonicalResponse: TypeAlias = pb.GenerateResponse | pb.EmbedResponse | pb.RerankResponse | pb.GenerateImageResponse
