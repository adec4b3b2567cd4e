"""Command `umg health`, for health checks of containers: whether a gateway on this machine is alive or ready."""

import json
import ssl
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection

from umg_grpc.config.network_addresses import Address

WAIT_SECONDS = 4.0
HEALTH_PATHS = {False: "/healthz", True: "/readyz"}
OK_STATUS = 200


def check_health(address: Address, *, ready: bool, tls: bool) -> int:
    """Print the state of the gateway. Return the exit code: 0 if it is alive, or with `ready` if it accepts calls, else
    1. Its certificate is not verified: it is for another name than this machine's, and nothing secret is sent.
    """
    connection = connection_to(address, tls=tls)
    try:
        connection.request("GET", HEALTH_PATHS[ready])
        response = connection.getresponse()
        body = response.read().decode(errors="replace")
    except (OSError, HTTPException) as error:
        print(f"umg: no gateway answers at {address}: {error}; name its HTTP address with --http", file=sys.stderr)
        return 1
    finally:
        connection.close()
    print(_summary(body))
    return 0 if response.status == OK_STATUS else 1


def connection_to(address: Address, *, tls: bool) -> HTTPConnection:
    """Return an HTTP connection to a gateway on this machine; its TLS certificate is not verified."""
    if not tls:
        return HTTPConnection(address.host, address.port, timeout=WAIT_SECONDS)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return HTTPSConnection(address.host, address.port, timeout=WAIT_SECONDS, context=context)


def _summary(body: str) -> str:
    """Return the status and the reasons in a health check's JSON body on one line."""
    try:
        found = json.loads(body)
    except ValueError:
        return body.strip()
    if not isinstance(found, dict):
        return body.strip()
    reasons = ", ".join(found.get("reasons", ()))
    return f"{found.get('status', '')}: {reasons}" if reasons else str(found.get("status", ""))
