"""Errors of the rerank format, decoded from providers."""

from functools import partial

from umg_grpc.wire.errors import provider_errors

TOO_LONG = "documents"
"""Canonical field that an error names if the provider rejects the request as too long."""

decode_error = partial(provider_errors.decode_error, too_long=TOO_LONG)
"""(HTTP status, headers by lower-case name, body) of a failed call -> the error that the caller gets."""
