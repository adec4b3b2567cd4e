"""Handlers of the paths below `/console`: sign-in, the page of a path, and the acts of its forms."""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import quote, urlencode

import grpc
from aiohttp import hdrs, web

from http_facade.console.address_filters import OFFERED_SPANS, Filters, read_filters
from http_facade.console.caller_rights import CallerRights
from http_facade.console.live_parts import LIVE_HEADER, LIVE_LAYOUT, LiveParts, SharedLiveParts
from http_facade.console.page_interface import Done, FileContent, Lead, Page, Visit
from http_facade.console.page_preferences import PAGE_PREFERENCES, keep_preferences, preferences_of
from http_facade.console.page_rendering import render, word
from http_facade.console.page_table import CONSOLE_PAGES, WATCH_GROUP, find_page
from http_facade.console.session_calls import CONSOLE_FACE, SessionCalls, session_methods
from http_facade.exchange.browser_forms import (
    FORM_REFUSED,
    SESSION_ENDED,
    explain_on_page,
    is_browser,
    lead_to,
    lead_to_sign_in,
    read_form,
)
from http_facade.exchange.browser_sessions import BrowserSession, csrf_token
from http_facade.exchange.error_responses import error_response
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.page_files import assets_path
from http_facade.exchange.page_headers import FORM_PAGE_HEADERS, HTML_TYPE
from http_facade.exchange.server_settings import Settings
from http_facade.exchange.sign_on_interface import BrowserSignOn
from http_facade.routes import DEFAULT_FORMAT, Shape
from umg_grpc.base.errors import UmgError, overloaded
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.errors.http_status import HTTP_STATUS

CONSOLE_PATH = "/console"
MAX_FORM_BYTES = 65_536
ACT_FIELD, TOKEN_FIELD, ONCE_FIELD, NOTE_NAME = "act", "csrf_token", "form_id", "note"
PREFERENCES_PATH = "preferences"
PageWork: TypeAlias = Callable[[HttpExchange, BrowserSession, SessionCalls, CallerRights], Awaitable[web.Response]]
MAIN_PAGES = ("overview", "me", "requests", "keys")
"""Pages to which the bar of a narrow window leads."""


@dataclass(frozen=True)
class PageFrame:
    """Values that all pages show around their content."""

    page: Page
    rights: CallerRights
    filters: Filters
    csrf_token: str
    form_id: str
    note: str
    preferences: Mapping[str, str]
    path: str
    """Path of the page with its query, to which forms of the frame lead back."""
    address: str
    """URL of the gateway for callers, without a trailing slash."""
    now: datetime
    tag: str = ""
    """Entity tag of a live page."""
    layout: str = "base.html"
    """Template around the content."""
    entered: Mapping[str, str] = field(default_factory=dict)
    """Fields of a form that was refused, to be shown again."""

    @property
    def navigation(self) -> Mapping[str, list[Page]]:
        """Pages that the person may see, by groups."""
        if self.rights.is_holder:
            return {WATCH_GROUP: [page for page in CONSOLE_PAGES if page.is_for_holders]}
        found = dict[str, list[Page]]()
        for page in CONSOLE_PAGES:
            if page.group and self.rights.extent(page.permission) >= page.least:
                found.setdefault(page.group, []).append(page)
        return found

    @property
    def spans(self) -> tuple[str, ...]:
        """Spans of time that are offered."""
        return OFFERED_SPANS

    @property
    def unfiltered_path(self) -> str:
        """Path of the page without its query; "" if it has none."""
        path, separator, _ = self.path.partition("?")
        return path if separator else ""

    @property
    def main_pages(self) -> list[Page]:
        """Pages to which the bar of a narrow window leads."""
        return [page for pages in self.navigation.values() for page in pages if page.name in MAIN_PAGES]

    @property
    def offered_preferences(self) -> Mapping[str, tuple[str, ...]]:
        """Preferences with their values."""
        return PAGE_PREFERENCES


class ConsoleHandlers:
    """Handlers of the console. All of a process share its bounds."""

    def __init__(self, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._methods = session_methods(channel)
        self._settings = settings
        self._live_parts = SharedLiveParts()

    def handler(self, shape: Shape) -> Callable[[HttpExchange], Awaitable[web.StreamResponse]]:
        """Return the handler method for pages or for their forms."""
        return {Shape.CONSOLE_PAGE: self.show, Shape.CONSOLE_FORM: self.act}[shape]

    async def show(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the page of a path, or lead from a path with a slash at its end to the one without."""
        if exchange.request.rel_url.raw_path.endswith("/"):
            return _without_slash(exchange)
        return await self._respond(exchange, self._page)

    async def act(self, exchange: HttpExchange) -> web.StreamResponse:
        """Perform the act of a form, and lead the browser on, or show the result that is shown once."""
        return await self._respond(exchange, self._act)

    async def _respond(
        self,
        exchange: HttpExchange,
        work: PageWork,
    ) -> web.StreamResponse:
        """Return the response of `work` for the person of the session, lead the browser to the sign-in, or explain on a
        page of its own why there is no page of the console now.
        """
        try:
            return await self._for_person(exchange, work)
        except UmgError as error:
            if not is_browser(exchange.request):
                raise
            explained = explain_on_page(error, exchange, CONSOLE_FACE)
        path = exchange.request.path_qs if exchange.request.method == hdrs.METH_GET else CONSOLE_PATH
        return await _html(HTTP_STATUS[explained.reason], "no_page", problem=explained, path=path)

    async def _for_person(
        self,
        exchange: HttpExchange,
        work: PageWork,
    ) -> web.StreamResponse:
        if not self._settings.load_shedder.admits_pages():
            raise overloaded("the gateway is busy with calls; load the page again")
        browser = BrowserSession(exchange.request, self._sign_on.base_url)
        if not browser.token:
            return _sign_in(exchange)
        try:
            credential = await self._settings.session_credential(browser.token)
            calls = SessionCalls(self._methods, exchange, browser.token, credential)
            rights = CallerRights(await calls.call(pb.GetCallerRequest(), pb.GetCallerResponse))
        except UmgError as error:
            if error.reason != pb.ERROR_REASON_INVALID_KEY:
                raise
            response = _sign_in(exchange, SESSION_ENDED)
            browser.forget_token(response)
            return response
        return await work(exchange, browser, calls, rights)

    async def _page(
        self, exchange: HttpExchange, browser: BrowserSession, calls: SessionCalls, rights: CallerRights
    ) -> web.Response:
        path = exchange.parameters.get("page", "")
        try:
            page, parameters = _found(path)
            visit = _visit(exchange, calls, rights, parameters)
        except UmgError as error:
            return await self._problem(exchange, browser, rights, error)
        if page.is_live and not rights.is_holder and LIVE_HEADER in exchange.request.headers:
            return await self._live(exchange, browser, page, visit)
        return await self._shown(exchange, browser, page, visit)

    async def _live(self, exchange: HttpExchange, browser: BrowserSession, page: Page, visit: Visit) -> web.Response:
        """Return the live parts of a page, or 304 if the browser has them."""

        async def draw() -> LiveParts:
            own = self._frame(exchange, browser, page, visit.rights, visit.filters, visit.now)
            frame = replace(own, layout=LIVE_LAYOUT, csrf_token="", form_id="")
            async with self._settings.drawings:
                content = await page.load(visit)
                html = await render(page.name, frame=frame, content=content, problem=None)
            return LiveParts(_tag(frame, content), html.encode())

        preferences = tuple(preferences_of(exchange.request).items())
        audience = exchange.request.path_qs, preferences, visit.rights.audience
        parts = await self._live_parts.get(audience, draw)
        return _if_known(exchange, parts.tag) or _tagged(_document(200, parts.html), parts.tag)

    async def _shown(
        self,
        exchange: HttpExchange,
        browser: BrowserSession,
        page: Page,
        visit: Visit,
        problem: UmgError | None = None,
        entered: Mapping[str, str] = MappingProxyType({}),
    ) -> web.Response:
        """Return a page; after a refused act with the problem above its content, and the fields of the form."""
        async with self._settings.drawings:
            return await self._drawn(exchange, browser, page, visit, problem, entered)

    async def _drawn(
        self,
        exchange: HttpExchange,
        browser: BrowserSession,
        page: Page,
        visit: Visit,
        problem: UmgError | None,
        entered: Mapping[str, str],
    ) -> web.Response:
        try:
            content = await page.load(visit)
        except UmgError as error:
            return await self._problem(exchange, browser, visit.rights, error, page)
        if isinstance(content, FileContent):
            if problem is None:
                return _file(content)
            return error_response(explain_on_page(problem, exchange, CONSOLE_FACE), DEFAULT_FORMAT)  # to a script
        if isinstance(content, Lead) and content.target:
            return lead_to(content.target)
        frame = self._frame(exchange, browser, page, visit.rights, visit.filters, visit.now)
        if problem is None:
            tag = _tag(frame, content) if page.is_live else ""
            if tag and (known := _if_known(exchange, tag)):
                return known
            html = await _html(200, page.name, frame=replace(frame, tag=tag), content=content, problem=None)
            return _tagged(html, tag)
        explained, frame = explain_on_page(problem, exchange, CONSOLE_FACE), replace(frame, entered=entered)
        return await _html(HTTP_STATUS[explained.reason], page.name, frame=frame, content=content, problem=explained)

    async def _act(
        self, exchange: HttpExchange, browser: BrowserSession, calls: SessionCalls, rights: CallerRights
    ) -> web.Response:
        """Perform the act of a form, or explain on a page why it is not accepted, as one of an older session is not."""
        try:
            return await self._accept(exchange, browser, calls, rights)
        except UmgError as error:
            return await self._problem(exchange, browser, rights, error)

    async def _accept(
        self, exchange: HttpExchange, browser: BrowserSession, calls: SessionCalls, rights: CallerRights
    ) -> web.Response:
        browser.check_site()
        form = await read_form(exchange, self._settings, MAX_FORM_BYTES)
        browser.check_csrf_token(form.pop(TOKEN_FIELD, ""))
        path = exchange.parameters.get("page", "")
        if path == PREFERENCES_PATH:
            return _preferred(form)
        page, parameters = _found(path)
        visit = _visit(exchange, calls, rights, parameters)
        act = page.acts.get(form.pop(ACT_FIELD, ""))
        if act is None:
            message = "the form names no act of this page; load the page again"
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=ACT_FIELD)
        try:
            self._settings.used_forms.use(form.pop(ONCE_FIELD, ""))
            done = await act(visit, form)
        except UmgError as error:
            return await self._shown(exchange, browser, page, visit, error, form)
        if isinstance(done, FileContent):
            return _file(done)
        if isinstance(done, Done):
            separator = "&" if "?" in done.path else "?"
            return lead_to(f"{done.path}{separator}{urlencode({NOTE_NAME: done.note})}")
        frame = self._frame(exchange, browser, page, visit.rights, visit.filters, visit.now)
        return await _html(200, done.template, frame=frame, content=done.content, problem=None)

    async def _problem(
        self,
        exchange: HttpExchange,
        browser: BrowserSession,
        rights: CallerRights,
        error: UmgError,
        page: Page | None = None,
    ) -> web.Response:
        """Return a page with the reason why there is no other."""
        now = datetime.now(UTC)
        frame = self._frame(exchange, browser, page or CONSOLE_PAGES[0], rights, read_filters({}, now), now)
        frame = replace(frame, form_id="", note="")
        explained = explain_on_page(error, exchange, CONSOLE_FACE)
        return await _html(HTTP_STATUS[explained.reason], "problem", frame=frame, content=None, problem=explained)

    def _frame(
        self,
        exchange: HttpExchange,
        browser: BrowserSession,
        page: Page,
        rights: CallerRights,
        filters: Filters,
        now: datetime,
    ) -> PageFrame:
        return PageFrame(
            page=page,
            rights=rights,
            filters=filters,
            csrf_token=csrf_token(browser.token),
            form_id=secrets.token_urlsafe(16),
            note=_note(exchange.request.query.get(NOTE_NAME, "")),
            preferences=preferences_of(exchange.request),
            path=exchange.request.path_qs,
            address=self._sign_on.base_url,
            now=now,
        )

    @property
    def _sign_on(self) -> BrowserSignOn:
        if (sign_on := self._settings.sign_on) is None:
            message = "the console is served by the HTTP face of the service's own process, which this one is not"
            raise UmgError(pb.ERROR_REASON_API_NOT_SERVED, message, api="console")
        return sign_on


def _found(path: str) -> tuple[Page, Mapping[str, str]]:
    if (found := find_page(path)) is None:
        message = f"the console has no page {echo(path)}; the navigation lists all of them"
        raise UmgError(pb.ERROR_REASON_PATH_NOT_FOUND, message, path=f"{CONSOLE_PATH}/{path}")
    return found


def _without_slash(exchange: HttpExchange) -> web.Response:
    page, query = quote(exchange.parameters["page"].rstrip("/")), exchange.request.rel_url.raw_query_string
    path = f"{CONSOLE_PATH}/{page}" if page else CONSOLE_PATH
    return web.Response(status=308, headers={hdrs.LOCATION: f"{path}?{query}" if query else path})


def _visit(exchange: HttpExchange, calls: SessionCalls, rights: CallerRights, parameters: Mapping[str, str]) -> Visit:
    now = datetime.now(UTC)
    query = {name: value for name, value in exchange.request.query.items() if name != NOTE_NAME}
    return Visit(calls, rights, read_filters(query, now), parameters, now)


def _sign_in(exchange: HttpExchange, notice: str = "") -> web.Response:
    """Lead the browser to the page to sign in, and from it back to the page, also to that of a form."""
    if exchange.request.method != hdrs.METH_POST:
        return lead_to_sign_in(exchange.request.path_qs, notice)
    has_page = exchange.parameters.get("page") != PREFERENCES_PATH
    return lead_to_sign_in(exchange.request.rel_url.raw_path if has_page else CONSOLE_PATH, FORM_REFUSED)


def _preferred(form: Mapping[str, str]) -> web.Response:
    """Return the way back to a page, with the preferences that were chosen."""
    path = form.get("return", "")
    response = lead_to(path if path.startswith(CONSOLE_PATH) else CONSOLE_PATH)
    keep_preferences(response, form)
    return response


def _note(key: str) -> str:
    """Return the words of a note in an address; "" for a note that does not exist."""
    try:
        return word(f"notes.{key}") if key else ""
    except KeyError:
        return ""


def _file(file: FileContent) -> web.Response:
    disposition = f'attachment; filename="{file.name}"'
    headers = {**FORM_PAGE_HEADERS, hdrs.CONTENT_TYPE: file.media_type, hdrs.CONTENT_DISPOSITION: disposition}
    return web.Response(headers=headers, body=file.text.encode())


def _tag(frame: PageFrame, content: object) -> str:
    """Return the entity tag of a page: of its content, its address and its preferences, and of the minute, in which its
    relative times become old. Tokens are not part of it.
    """
    shown = content, frame.filters.query, frame.preferences, frame.note, f"{frame.now:%d %H:%M}", assets_path()
    return hashlib.blake2b(repr(shown).encode(), digest_size=16).hexdigest()


def _tagged(response: web.Response, tag: str) -> web.Response:
    if tag:
        response.etag = tag
    return response


def _if_known(exchange: HttpExchange, tag: str) -> web.Response | None:
    """Return the response 304 if the browser has the page with this tag."""
    if any(each.value == tag for each in exchange.request.if_none_match or ()):
        return _tagged(web.Response(status=304, headers=FORM_PAGE_HEADERS), tag)
    return None


async def _html(status: int, template: str, **values: object) -> web.Response:
    return _document(status, (await render(template, **values)).encode())


def _document(status: int, html: bytes) -> web.Response:
    return web.Response(status=status, headers={**FORM_PAGE_HEADERS, hdrs.CONTENT_TYPE: HTML_TYPE}, body=html)
