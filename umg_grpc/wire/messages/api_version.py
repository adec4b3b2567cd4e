"""Version of the messages API (header `anthropic-version`) of a caller, and of a call to a provider."""

from collections.abc import Mapping

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.wire.core.json_decoding import MAX_ECHO, invalid
from umg_grpc.wire.dropped_fields_report import Report

VERSION_HEADER, API_VERSION = "anthropic-version", "2023-06-01"
CALLER_VERSIONS = (API_VERSION, "2026-10-21")
"""Versions that callers may send. The second has fewer inputs and equal responses, so it can be sent as the first."""


def check_version(headers: Mapping[str, str]) -> None:
    """Raise UmgError(INVALID_FIELD) for a request with an unknown version. A request without a version is accepted."""
    version = headers.get(VERSION_HEADER, API_VERSION)
    if version not in CALLER_VERSIONS:
        raise invalid(
            VERSION_HEADER, f"expected {' or '.join(CALLER_VERSIONS)}, got {version[:MAX_ECHO]!r}; send one of them"
        )


def provider_version(headers: Mapping[str, str], quirks: Quirks, report: Report) -> str:
    """Return the version for a provider: the caller's if the provider accepts it, else the oldest that it accepts."""
    version, accepted = headers.get(VERSION_HEADER, API_VERSION), quirks.versions or (API_VERSION,)
    if version in accepted:
        return version
    report.drop(VERSION_HEADER, accepted[0])
    return accepted[0]
