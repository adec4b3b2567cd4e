"""Config of the gateway: one YAML file, read strictly. Pure: `parse` takes the text and the environment."""

from umg_grpc.config.address import Address
from umg_grpc.config.built_in import BUILT_IN
from umg_grpc.config.file_schema import built_in, parse
from umg_grpc.config.values import (
    Auth,
    BearerAuth,
    BlobStorage,
    Breaker,
    Channel,
    ChannelModel,
    Config,
    Cors,
    HeaderAuth,
    Limits,
    Log,
    MetricsAccess,
    ModelInfo,
    NoAuth,
    Overload,
    Retention,
    Retries,
    Timeout,
    Tls,
)
from umg_grpc.config.yaml_document import ConfigError, Problem

__all__ = [
    "BUILT_IN",
    "Address",
    "Auth",
    "BearerAuth",
    "BlobStorage",
    "Breaker",
    "Channel",
    "ChannelModel",
    "Config",
    "ConfigError",
    "Cors",
    "HeaderAuth",
    "Limits",
    "Log",
    "MetricsAccess",
    "ModelInfo",
    "NoAuth",
    "Overload",
    "Problem",
    "Retention",
    "Retries",
    "Timeout",
    "Tls",
    "built_in",
    "parse",
]
