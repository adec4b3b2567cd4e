"""Readiness of the gateway for load balancers and orchestrators: the response of `/readyz`."""

import json
from dataclasses import dataclass
from typing import Literal

from aiohttp import hdrs, web

from http_facade.exchange.error_responses import error_response
from http_facade.routes import DEFAULT_FORMAT
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

RETRY_AFTER_SECONDS = "1"


@dataclass(frozen=True)
class Readiness:
    """Readiness of the gateway: whether it serves calls, the reasons if not, and unavailable dependencies."""

    status: Literal["ready", "starting", "draining", "unavailable"] = "ready"
    reasons: tuple[str, ...] = ()


def readiness_response(readiness: Readiness) -> web.Response:
    """Return the response of `/readyz`: 200, or 503 with `retry-after` and an error body if calls are not served."""
    body: dict[str, object] = {"status": readiness.status, "reasons": readiness.reasons}
    if readiness.status == "ready":
        return web.json_response(body)
    why = "; ".join(readiness.reasons) or readiness.status
    error = UmgError(
        pb.ERROR_REASON_UNAVAILABLE, f"the gateway cannot serve now: {why}", retry_after_seconds=RETRY_AFTER_SECONDS
    )
    response = error_response(error, DEFAULT_FORMAT)
    written = response.body if isinstance(response.body, bytes) else b"{}"
    headers = {**response.headers, hdrs.CONTENT_TYPE: "application/json"}
    return web.Response(status=response.status, headers=headers, body=json.dumps(body | json.loads(written)).encode())
