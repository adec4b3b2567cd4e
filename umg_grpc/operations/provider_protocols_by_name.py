"""Protocols of all operations' providers by name, with the properties that the config needs."""

from collections.abc import Sequence

from umg_grpc.operations import OPERATION_ROWS
from umg_grpc.wire.core.provider_key_headers import DEFAULT_KEY_HEADER
from umg_grpc.wire.provider_model_lists import ProviderModelList
from umg_grpc.wire.provider_protocols import ProviderProtocol


def provider_protocols() -> dict[str, ProviderProtocol]:
    """Return the protocols of all operations by name, in the order of the rows."""
    return {name: protocol for row in OPERATION_ROWS for name, protocol in row.protocols.items()}


def protocol_named(name: str) -> ProviderProtocol | None:
    """Return the protocol with this name; None for an unknown name."""
    return next((row.protocols[name] for row in OPERATION_ROWS if name in row.protocols), None)


def key_header(protocol: str) -> str:
    """Return the HTTP header for a provider's key in this protocol, for a channel whose config sets no `auth`."""
    found = protocol_named(protocol)
    return DEFAULT_KEY_HEADER if found is None else found.key_header


def has_input_limit(protocol: str) -> bool:
    """Return whether the providers of this protocol limit the inputs of one request."""
    found = protocol_named(protocol)
    return found is not None and found.has_input_limit


def has_callers(protocol: str) -> bool:
    """Return whether callers can also use this protocol as their format; false if only providers are called in it."""
    found = protocol_named(protocol)
    return found is None or found.has_callers


def protocol_by_other_name(written: str) -> str | None:
    """Return the name of the protocol that has `written` as an alternative name in configs; None if there is none."""
    return next((name for name, row in provider_protocols().items() if written.lower() in row.other_names), None)


def model_list(protocols: Sequence[str]) -> ProviderModelList | None:
    """Return the model list of the first protocol that has one; None if none has."""
    found = (protocol_named(protocol) for protocol in protocols)
    return next((row.model_list for row in found if row is not None and row.model_list is not None), None)
