"""Errors of connections to providers: unreachable, closed, broken, too large. `cause`: text that only the log shows."""

import errno
import socket
import ssl

from umg_grpc.base.errors import Failure, UmgError, overloaded
from umg_grpc.base.provider_failure import ProviderFailure
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.failure_kinds import DNS_FAULT, PROXY_FAULT, TLS_FAULT, Evidence, kind_of

NO_MORE_FILES = frozenset[int | None]({errno.EMFILE, errno.ENFILE})


class ProxyUnreachableError(OSError):
    """Failure to open a connection to the proxy."""


EXCEPTION_FAULTS: dict[type[Exception], str] = {
    ProxyUnreachableError: PROXY_FAULT,
    socket.gaierror: DNS_FAULT,
    UnicodeError: DNS_FAULT,
    ssl.SSLError: TLS_FAULT,
}
"""Class of the exception of an attempt to connect -> part that failed (`PROXY_FAULT`, `DNS_FAULT` or `TLS_FAULT`)."""


def not_connected(error: Exception) -> UmgError:
    """Return the error for an exception that was raised when a connection was to be opened."""
    fault = next((fault for kind, fault in EXCEPTION_FAULTS.items() if isinstance(error, kind)), "")
    cause = f"{error}" if fault == PROXY_FAULT else f"{type(error).__name__}: {error}"
    return unreachable(cause, getattr(error, "errno", None), fault)


def unreachable(cause: str, number: int | None = None, fault: str = "") -> UmgError:
    """Return the error for a connection that could not be opened or was closed before anything was sent. `cause`: for
    the log; `number`: system's error number; `fault`: part that failed (`PROXY_FAULT`, `DNS_FAULT` or `TLS_FAULT`), ""
    otherwise.
    """
    if number in NO_MORE_FILES:  # a failure of the gateway, not of a provider
        full = overloaded("the gateway has as many connections open as its system allows")
        full.cause = cause
        return full
    error = UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, "the provider could not be reached; try again")
    return error.with_failure(Failure.NOT_SENT, cause).with_facts(_facts(fault))


def refused_by_proxy(cause: str) -> UmgError:
    """Return the error for a proxy that rejected the gateway's credentials. `cause`: text for the log."""
    message = "the proxy to the provider refused the gateway; the operator has to check the channel"
    error = UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, message)
    return error.with_failure(Failure.DOWN, cause).with_facts(_facts(PROXY_FAULT))


def _facts(fault: str) -> ProviderFailure:
    return ProviderFailure(kind_of(Evidence(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, fault=fault)))


def disconnected(cause: str) -> UmgError:
    """Return the error for a connection that was closed before a response began. `cause`: text for the log."""
    message = "the provider closed the connection before it answered; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message).with_failure(Failure.AMBIGUOUS, cause)


def broken(cause: str) -> UmgError:
    """Return the error for a connection that broke during a response, or on which bytes arrived that are not HTTP."""
    message = "the provider's connection broke before the response was complete; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message).with_failure(Failure.AMBIGUOUS, cause)


def head_too_large() -> UmgError:
    """Return the error for response headers that exceed the size limit."""
    message = "the head of the provider's response is larger than 64 KiB"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)


def too_large(limit: int) -> UmgError:
    """Return the error for a response body of more than `limit` bytes. No other channel is tried: the request itself
    causes the size, and a second response would also have to be paid for.
    """
    message = f"the provider's response is larger than {limit / 2**20:g} MiB; request less in one call"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.TOO_LARGE)
