"""The channels as they are configured now."""

from collections.abc import Callable
from dataclasses import dataclass, field

from umg_grpc.routing import Router
from umg_grpc.upstream.text import TextUpstream
from umg_grpc.upstream.unary import UnaryUpstream
from umg_grpc.v1 import pb


@dataclass
class Channels:
    """Which channels serve a model, and how each is called, by its name. A reload of the config replaces all of it."""

    router: Router
    text: dict[str, TextUpstream] = field(default_factory=dict)
    embedding: dict[str, UnaryUpstream[pb.EmbedRequest, pb.EmbedResponse]] = field(default_factory=dict)
    rerank: dict[str, UnaryUpstream[pb.RerankRequest, pb.RerankResponse]] = field(default_factory=dict)
    resting_keys: dict[str, Callable[[], int]] = field(default_factory=dict)
    """How many keys of a channel are left alone now."""

    def replace(self, other: "Channels") -> None:
        """Takes those of another config, for the calls that begin from now on."""
        self.router, self.text, self.embedding, self.rerank = other.router, other.text, other.embedding, other.rerank
        self.resting_keys = other.resting_keys
