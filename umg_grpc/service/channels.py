"""The channels as they are configured now."""

from collections.abc import Mapping
from dataclasses import dataclass

from umg_grpc.routing import Router
from umg_grpc.upstream.text import TextUpstream


@dataclass
class Channels:
    """Which channels serve a model, and how each is called. A reload of the config replaces both."""

    router: Router
    upstreams: Mapping[str, TextUpstream]  # by the channel's name
