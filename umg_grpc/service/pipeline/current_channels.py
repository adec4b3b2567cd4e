"""Channels of the current config: the router, and the connections to the providers."""

from __future__ import annotations  # most types are needed by type checkers alone, and slow to import

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.message import Message

from umg_grpc.operations import UNARY_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from umg_grpc.operations import ModelOperation, UnaryOperation
    from umg_grpc.routing import Router
    from umg_grpc.service.guardrails.guard_selection import Guards
    from umg_grpc.upstream.caller_url_fetch import ProviderRoute
    from umg_grpc.upstream.http.provider_connection import HttpChannel
    from umg_grpc.upstream.upstream_interfaces import ImageUpstream, TextUpstream, UnaryUpstream, VideoUpstream

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class UnaryUpstreams:
    """Upstreams of the operations with one request and one response, by operation and channel."""

    def __init__(self) -> None:
        self._found: dict[ModelOperation, dict[str, UnaryUpstream[Any, Any]]] = {
            value: {} for value in UNARY_OPERATIONS
        }

    def add(
        self, operation: UnaryOperation[RequestT, ResponseT], channel: str, upstream: UnaryUpstream[RequestT, ResponseT]
    ) -> None:
        """Set the upstream by which a channel is called for an operation."""
        self._found[operation.value][channel] = upstream

    def of(self, operation: UnaryOperation[RequestT, ResponseT]) -> Mapping[str, UnaryUpstream[RequestT, ResponseT]]:
        """Return channel -> upstream of an operation."""
        return self._found[operation.value]


@dataclass
class Channels:
    """Router of the current config, and the upstreams of its channels. A reload of the config replaces all of them."""

    router: Router
    text: dict[str, TextUpstream] = field(default_factory=dict)
    unary: UnaryUpstreams = field(default_factory=UnaryUpstreams)
    images: dict[str, ImageUpstream] = field(default_factory=dict)
    videos: dict[str, VideoUpstream] = field(default_factory=dict)
    providers: dict[str, HttpChannel] = field(default_factory=dict)
    """Channel -> HTTP connection to its provider; without local models and sandboxes."""
    routes: dict[str, ProviderRoute] = field(default_factory=dict)
    """Channel -> way to the files that its provider returns as addresses; without local models and sandboxes."""
    suspended_keys: dict[str, Callable[[], int]] = field(default_factory=dict)
    """Channel -> function that returns the number of its provider keys that are suspended now after failures."""

    guards: Guards | None = None

    def replace(self, other: Channels) -> None:
        """Take over the router and upstreams of `other` (channels of a new config) for calls that start later."""
        self.router, self.text, self.unary = other.router, other.text, other.unary
        self.images, self.videos = other.images, other.videos
        self.providers, self.routes, self.suspended_keys = other.providers, other.routes, other.suspended_keys
        self.guards = other.guards
