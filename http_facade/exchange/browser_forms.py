"""Forms of pages: their fields, and the way on after one."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from aiohttp import hdrs, web

from http_facade.exchange.handler_failures import explain
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.page_headers import FORM_TYPE
from http_facade.exchange.request_bodies import read_body
from http_facade.exchange.server_settings import Settings
from umg_grpc.base.errors import UmgError

LOGIN_PATH = "/auth/login"
SESSION_ENDED, FORM_REFUSED, OTHER_SESSION = "session_ended", "form_refused", "other_session"
SIGN_IN_NOTICES: Mapping[str, str] = {
    SESSION_ENDED: "Your session has ended; sign in again.",
    FORM_REFUSED: "Your session had ended, so nothing was changed; sign in and send the form again.",
    OTHER_SESSION: "The page from which you signed out belonged to an earlier session; this browser is still signed in "
    "by a later one. Load /console again and sign out there.",
}
"""Notices above the fields of the page to sign in, by their names in its address."""


def is_browser(request: web.BaseRequest) -> bool:
    """Return whether the client of a request shows pages."""
    return "text/html" in request.headers.get(hdrs.ACCEPT, "")


def lead_to_sign_in(return_path: str = "", notice: str = "") -> web.Response:
    """Return a redirect to the page to sign in. `return_path`: page to which it leads back. `notice`: see
    `SIGN_IN_NOTICES`.
    """
    query = {name: value for name, value in (("return", return_path), ("notice", notice)) if value}
    return lead_to(f"{LOGIN_PATH}?{urlencode(query)}" if query else LOGIN_PATH)


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
