"""Handlers of the sign-on of people: the page with the issuers, the redirects to and from them, and sign-out."""

from collections.abc import Awaitable, Callable
from html import escape
from urllib.parse import urlencode

import msgspec
from aiohttp import hdrs, web

from http_facade.exchange.browser_forms import (
    LOGIN_PATH,
    OTHER_SESSION,
    SIGN_IN_NOTICES,
    explain_on_page,
    is_browser,
    lead_to,
    lead_to_sign_in,
    read_form,
)
from http_facade.exchange.browser_sessions import BrowserSession, csrf_token
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.page_files import page_text
from http_facade.exchange.page_headers import FORM_PAGE_HEADERS, HTML_TYPE
from http_facade.exchange.request_bodies import JSON_TYPE
from http_facade.exchange.server_settings import Settings
from http_facade.exchange.sign_on_interface import BrowserSignOn, SignInClient, local_path
from http_facade.routes import Shape
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.http_status import HTTP_STATUS

MAX_FORM_BYTES = 16_384
COUNTED_REASONS = frozenset({pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_PERMISSION_DENIED})


class SignOnHandlers:
    """Handlers of the paths below `/auth`."""

    def __init__(self, face: str, settings: Settings) -> None:
        self._face = face
        self._settings = settings

    @property
    def _sign_on(self) -> BrowserSignOn:
        if (sign_on := self._settings.sign_on) is None:
            message = "people sign in at the HTTP face of the service's own process, which this one is not"
            raise UmgError(pb.ERROR_REASON_API_NOT_SERVED, message, api="sign-on")
        return sign_on

    def handler(self, shape: Shape) -> Callable[[HttpExchange], Awaitable[web.StreamResponse]]:
        """Return the handler method for a kind of operation."""
        return {
            Shape.SIGN_IN_PAGE: self.page,
            Shape.SIGN_IN: self.sign_in,
            Shape.SIGN_IN_CALLBACK: self.callback,
            Shape.SIGN_OUT: self.sign_out,
            Shape.GET_SESSION: self.session,
        }[shape]

    async def page(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the page with the issuers; with `issuer`, lead the browser to this one."""
        query = exchange.request.query
        return_path = local_path(query.get("return", "/"))
        try:
            browser = self._browser(exchange)
        except UmgError as error:
            if not is_browser(exchange.request):
                raise
            return self._refused(return_path, explain_on_page(error, exchange, self._face))
        if (issuer := query.get("issuer")) is None:
            return self._page(return_path, SIGN_IN_NOTICES.get(query.get("notice", ""), ""))
        try:
            url, kept = await self._sign_on.begin(issuer, return_path)
        except UmgError as error:
            return self._refused(return_path, explain_on_page(error, exchange, self._face))
        response = lead_to(url)
        browser.keep_attempt(response, kept)
        return response

    async def callback(self, exchange: HttpExchange) -> web.StreamResponse:
        """Complete a sign-in at an issuer, and lead the browser to where it began."""
        browser, query = self._browser(exchange), dict(exchange.request.query)

        async def opened(client: SignInClient) -> tuple[str, str]:
            return await self._sign_on.complete(browser.attempt, query, client)

        return await self._opened(exchange, browser, "/", opened)

    async def sign_in(self, exchange: HttpExchange) -> web.StreamResponse:
        """Open a session by an API key or a code of the start, and lead the browser on."""
        browser = self._browser(exchange)
        browser.check_site()
        form = await read_form(exchange, self._settings, MAX_FORM_BYTES)
        return_path = local_path(form.get("return", "/"))

        async def opened(client: SignInClient) -> tuple[str, str]:
            if form.get("code"):
                return await self._sign_on.open_by_code(form["code"], client), return_path
            return await self._sign_on.open_by_key(form.get("key", "").strip(), client), return_path

        return await self._opened(exchange, browser, return_path, opened)

    async def sign_out(self, exchange: HttpExchange) -> web.StreamResponse:
        """End the session. A page of another session does not end it: its browser is led to the page to sign in."""
        browser = self._browser(exchange)
        browser.check_site()
        if token := browser.token:
            form = await read_form(exchange, self._settings, MAX_FORM_BYTES)
            try:
                browser.check_csrf_token(form.get("csrf_token", ""))
            except UmgError as error:
                if not is_browser(exchange.request):
                    raise
                explain_on_page(error, exchange, self._face)
                return lead_to_sign_in(notice=OTHER_SESSION)
            await self._sign_on.end(token)
        response = lead_to_sign_in()
        browser.forget_token(response)
        return response

    async def session(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the person of the session, the roles, and the ends of the session."""
        browser = self._browser(exchange)
        found = await self._sign_on.session(browser.token) if browser.token else None
        if found is None:
            message = f"there is no session, or it has ended; sign in at {LOGIN_PATH}"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        body = msgspec.json.encode(
            {
                "name": found.name,
                "email": found.email,
                "user_id": found.user_id,
                "key_id": found.key_id,
                "roles": [{"account_id": role.account_id, "role": role.role} for role in found.roles],
                "session_id": found.session_id,
                "create_time": found.create_time,
                "idle_end": found.idle_end,
                "end": found.end,
                "csrf_token": csrf_token(browser.token),
            }
        )
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE, hdrs.CACHE_CONTROL: "no-store"}, body=body)

    async def _opened(
        self,
        exchange: HttpExchange,
        browser: BrowserSession,
        return_path: str,
        opened: Callable[[SignInClient], Awaitable[tuple[str, str]]],
    ) -> web.StreamResponse:
        """Return the redirect with the cookie of a new session, or the page with the reason of a failure."""
        client = _client(exchange)
        failures = self._settings.sign_in_failures
        try:
            failures.check(client.address)
            token, target = await opened(client)
        except UmgError as error:
            if error.reason in COUNTED_REASONS:
                failures.count(client.address)
            response = self._refused(return_path, explain_on_page(error, exchange, self._face))
            browser.forget_attempt(response)
            return response
        if browser.token:
            await self._sign_on.end(browser.token)
        response = lead_to(local_path(target))
        browser.keep_token(response, token)
        return response

    def _browser(self, exchange: HttpExchange) -> BrowserSession:
        return BrowserSession(exchange.request, self._sign_on.base_url)

    def _refused(self, return_path: str, error: UmgError) -> web.Response:
        return self._page(return_path, error.message, HTTP_STATUS[error.reason])

    def _page(self, return_path: str, message: str = "", status: int = 200) -> web.Response:
        links = list[str]()
        for name, title in self._sign_on.issuers.items():
            query = urlencode({"issuer": name, "return": return_path})
            links.append(f'<a class="button" href="{LOGIN_PATH}?{escape(query)}">Sign in with {escape(title)}</a>')
        text = page_text("sign-on.html")
        for name, value in (
            ("message", escape(message)),
            ("issuers", "\n".join(links)),
            ("return", escape(return_path)),
        ):
            text = text.replace(f"{{{{{name}}}}}", value)
        headers = {**FORM_PAGE_HEADERS, hdrs.CONTENT_TYPE: HTML_TYPE}
        return web.Response(status=status, headers=headers, body=text.encode())


def _client(exchange: HttpExchange) -> SignInClient:
    request = exchange.request
    return SignInClient(request.remote or "", request.headers.get(hdrs.USER_AGENT, ""))
