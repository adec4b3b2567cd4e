"""Fake provider of chat that checks path, key and model as the vendor of the format does, with its errors."""

from dataclasses import dataclass

from aiohttp import web

from tests.support.providers.scripted import Scripted
from tests.support.providers.server import ReceivedRequest

KEY = "sk-live-check-0123456789"


@dataclass
class StrictVendor(Scripted):
    """Fake provider with a list of two models at `/v1`, and one key."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if not received.path.startswith("/v1/") or received.path.startswith("/v1/v1/"):
            message = f"Invalid URL ({request.method} {received.path})"
            return web.json_response({"error": {"message": message, "type": "invalid_request_error"}}, status=404)
        if received.headers.get("authorization") != f"Bearer {KEY}":
            error = {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}
            return web.json_response({"error": error}, status=401)
        if received.path == "/v1/models":
            return web.json_response({"data": [{"id": "gpt-large"}, {"id": "gpt-small"}]})
        if received.json["model"] not in {"gpt-large", "gpt-hidden"}:
            error = {"message": f"The model `{received.json['model']}` does not exist", "code": "model_not_found"}
            return web.json_response({"error": error}, status=404)
        return await super().answer(request, received)
