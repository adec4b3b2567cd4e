"""Forms of pages: their fields, and the way on after one."""

from urllib.parse import parse_qsl

from aiohttp import hdrs, web

from http_facade.exchange.handler_failures import explain
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.page_headers import FORM_TYPE
from http_facade.exchange.request_bodies import read_body
from http_facade.exchange.server_settings import Settings
from umg_grpc.base.errors import UmgError


async def read_form(exchange: HttpExchange, settings: Settings, limit_bytes: int) -> dict[str, str]:
    """Return the fields of a form, also the empty ones. Raise UmgError for a body that is none or too large."""
    limit = min(limit_bytes, settings.body_limit_bytes)
    body = await read_body(exchange, limit, settings.upload_seconds, (FORM_TYPE,))
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def lead_to(url: str) -> web.Response:
    """Return a redirect after a form, which the browser follows by a GET."""
    headers = {hdrs.LOCATION: url, hdrs.CACHE_CONTROL: "no-store", "referrer-policy": "no-referrer"}
    return web.Response(status=303, headers=headers)


def explain_on_page(error: UmgError, exchange: HttpExchange, face: str) -> UmgError:
    """Return the error as a page shows it, and note it for the access log."""
    explained = explain(error, exchange, face)
    exchange.failure = explained.name
    return explained
