"""What the operator wrote: one YAML file, read strictly. Pure: `parse` is given the text and the environment."""

from umg_grpc.config.built_in import BUILT_IN
from umg_grpc.config.document import ConfigError, Problem
from umg_grpc.config.read import built_in, parse
from umg_grpc.config.values import (
    Auth,
    BearerAuth,
    Breaker,
    Channel,
    ChannelModel,
    Config,
    Cors,
    HeaderAuth,
    Limits,
    Log,
    ModelInfo,
    NoAuth,
    Overload,
    Retention,
    Retries,
    Timeout,
)

__all__ = [
    "BUILT_IN",
    "Auth",
    "BearerAuth",
    "Breaker",
    "Channel",
    "ChannelModel",
    "Config",
    "ConfigError",
    "Cors",
    "HeaderAuth",
    "Limits",
    "Log",
    "ModelInfo",
    "NoAuth",
    "Overload",
    "Problem",
    "Retention",
    "Retries",
    "Timeout",
    "built_in",
    "parse",
]
