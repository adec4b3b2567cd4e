"""Config of the gateway: parses and checks its YAML file, with the line of each problem, into immutable values. Pure:
`parse` takes the text and the environment variables. The names of this package are loaded at their first use: a command
that only parses an address reads no YAML.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from umg_grpc.config.config_values import (
        BlobStorage,
        Channel,
        ChannelModel,
        Config,
        MetricsAccess,
        ModelInfo,
        Retention,
        Storage,
    )
    from umg_grpc.config.file_schema import built_in, parse, parse_storage
    from umg_grpc.config.file_sections import (
        AccessKeyAuth,
        Auth,
        AwsAuth,
        AzureAuth,
        BearerAuth,
        Breaker,
        CloudAuth,
        CommandAuth,
        CorsSection,
        Fallbacks,
        GoogleAuth,
        HeaderAuth,
        JwtAuth,
        Limits,
        Log,
        NoAuth,
        Overload,
        QueryAuth,
        Retries,
        ServiceAccountAuth,
        Timeout,
        Tls,
    )
    from umg_grpc.config.network_addresses import Address
    from umg_grpc.config.yaml_document import ConfigError, Problem

__all__ = [
    "AccessKeyAuth",
    "Address",
    "Auth",
    "AwsAuth",
    "AzureAuth",
    "BearerAuth",
    "BlobStorage",
    "Breaker",
    "Channel",
    "ChannelModel",
    "CloudAuth",
    "CommandAuth",
    "Config",
    "ConfigError",
    "CorsSection",
    "Fallbacks",
    "GoogleAuth",
    "HeaderAuth",
    "JwtAuth",
    "Limits",
    "Log",
    "MetricsAccess",
    "ModelInfo",
    "NoAuth",
    "Overload",
    "Problem",
    "QueryAuth",
    "Retention",
    "Retries",
    "ServiceAccountAuth",
    "Storage",
    "Timeout",
    "Tls",
    "built_in",
    "parse",
    "parse_storage",
]

_MODULES = {
    "Address": "network_addresses",
    "ConfigError": "yaml_document",
    "Problem": "yaml_document",
    **dict.fromkeys(("BlobStorage", "Channel", "ChannelModel", "Config", "MetricsAccess"), "config_values"),
    **dict.fromkeys(("ModelInfo", "Retention", "Storage"), "config_values"),
    **dict.fromkeys(("built_in", "parse", "parse_storage"), "file_schema"),
}
"""Name exported by this package -> its module; names without an entry are in `file_sections`."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_MODULES.get(name, 'file_sections')}"), name)
    globals()[name] = found
    return found
