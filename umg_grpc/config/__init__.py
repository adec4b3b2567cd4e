"""What the operator wrote: one YAML file, read strictly. Pure: `parse` is given the text and the environment."""

from umg_grpc.config.document import ConfigError, Problem
from umg_grpc.config.read import BUILT_IN, built_in, parse
from umg_grpc.config.values import (
    Auth,
    BearerAuth,
    Channel,
    ChannelModel,
    Config,
    Cors,
    HeaderAuth,
    Log,
    ModelInfo,
    NoAuth,
    Timeout,
)

__all__ = [
    "BUILT_IN",
    "Auth",
    "BearerAuth",
    "Channel",
    "ChannelModel",
    "Config",
    "ConfigError",
    "Cors",
    "HeaderAuth",
    "Log",
    "ModelInfo",
    "NoAuth",
    "Problem",
    "Timeout",
    "built_in",
    "parse",
]
