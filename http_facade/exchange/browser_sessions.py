"""Sessions in browsers: the cookies, the protection of POSTs from other sites and of repeated forms, and the bound of
failed sign-ins.
"""

import base64
import hmac
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

SESSION_COOKIE, ATTEMPT_COOKIE = "umg_session", "umg_sign_in"
SECURE_PREFIX = "__Host-"
"""Prefix by which browsers accept a cookie from its own host over TLS alone (RFC 6265bis, section 4.1.3)."""
ATTEMPT_SECONDS = 600
CSRF_PURPOSE = b"umg csrf"
SITE_HEADER = "sec-fetch-site"
MAX_FAILURES, FAILURE_SECONDS = 5, 60.0
MAX_ADDRESSES = MAX_FORM_IDS = 10_000


class BrowserSession:
    """Cookies of one request, and their attributes in its response."""

    def __init__(self, request: web.BaseRequest, base_url: str) -> None:
        """Read the cookies of a request. `base_url`: URL of the gateway for browsers. Raise UmgError(PERMISSION_DENIED)
        if the cookies would be sent without TLS, unless both are on this machine.
        """
        self._request = request
        self._is_secure = urlsplit(base_url).scheme == "https"
        if not self._is_secure and not is_loopback(request.host):
            message = (
                "people sign in over TLS: set `tls`, or `public_url: https://…` where a proxy has the certificate; "
                "without TLS only at a loopback address of this machine"
            )
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="sign_in")
        self._prefix = SECURE_PREFIX if self._is_secure else ""
        self._origin = "{0.scheme}://{0.netloc}".format(urlsplit(base_url))

    @property
    def token(self) -> str:
        """Token of the session; "" without one."""
        return self._request.cookies.get(self._prefix + SESSION_COOKIE, "")

    @property
    def attempt(self) -> str:
        """Text of a sign-in that has begun; "" without one."""
        return self._request.cookies.get(self._prefix + ATTEMPT_COOKIE, "")

    def keep_token(self, response: web.Response, token: str) -> None:
        """Give the browser the token of a session, which scripts cannot read."""
        self._set(response, SESSION_COOKIE, token, None)
        self.forget_attempt(response)

    def keep_attempt(self, response: web.Response, text: str) -> None:
        """Give the browser the text of a sign-in that has begun."""
        self._set(response, ATTEMPT_COOKIE, text, ATTEMPT_SECONDS)

    def forget_token(self, response: web.Response) -> None:
        """Remove the token of the session from the browser."""
        self._set(response, SESSION_COOKIE, "", 0)

    def forget_attempt(self, response: web.Response) -> None:
        """Remove the text of a sign-in from the browser."""
        self._set(response, ATTEMPT_COOKIE, "", 0)

    def check_site(self) -> None:
        """Raise UmgError(PERMISSION_DENIED) unless a page of this gateway sent the request."""
        headers = self._request.headers
        site, origin = headers.get(SITE_HEADER), headers.get(hdrs.ORIGIN)
        here = {self._origin, f"{urlsplit(self._origin).scheme}://{self._request.host}"}
        if site != "same-origin" if site is not None else origin not in here:
            message = "the request does not come from a page of this gateway; sign in and out on its own pages"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="sign_in")

    def check_csrf_token(self, sent: str) -> None:
        """Raise UmgError(PERMISSION_DENIED) unless the request has the token that only pages of the session know."""
        if not hmac.compare_digest(csrf_token(self.token).encode(), sent.encode()):
            message = "`csrf_token` is not that of the session; load the page again"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="sign_out")

    def _set(self, response: web.Response, name: str, value: str, seconds: int | None) -> None:
        response.set_cookie(
            self._prefix + name,
            value,
            max_age=seconds,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="Lax",  # the issuer leads back from its own site
        )


def csrf_token(token: str) -> str:
    """Return the token that forms of a session send beside its cookie."""
    return base64.urlsafe_b64encode(hmac.digest(token.encode(), CSRF_PURPOSE, "sha256")).decode().rstrip("=")


def is_loopback(host: str) -> bool:
    """Return whether a `Host` header names this machine."""
    try:
        name = (urlsplit(f"//{host}").hostname or "") if host.isprintable() else ""
    except ValueError:  # half an IPv6 address
        return False
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


class UsedForms:
    """Ids of the forms that were sent, each of which is accepted once."""

    def __init__(self) -> None:
        self._ids = OrderedDict[str, None]()

    def use(self, form_id: str) -> None:
        """Note that a form was sent. Raise UmgError(ALREADY_EXISTS) for one without an id, or that was sent before."""
        if not form_id or form_id in self._ids:
            message = "this form was sent already; load the page again to send another"
            raise UmgError(pb.ERROR_REASON_ALREADY_EXISTS, message)
        self._ids[form_id] = None
        if len(self._ids) > MAX_FORM_IDS:
            self._ids.popitem(last=False)


class FailureLimit:
    """Bound of the failed sign-ins of each address: `MAX_FAILURES` in `FAILURE_SECONDS`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._failures = OrderedDict[str, deque[float]]()

    def check(self, address: str) -> None:
        """Raise UmgError(RATE_LIMITED) for an address with as many recent failures as the bound."""
        times, since = self._failures.get(address), self._monotonic() - FAILURE_SECONDS
        if times is None or len(times) < MAX_FAILURES or times[0] <= since:
            return
        wait = times[0] - since
        message = f"{MAX_FAILURES} sign-ins from your address failed; try again in {wait:.0f} seconds"
        raise UmgError(pb.ERROR_REASON_RATE_LIMITED, message, retry_after_seconds=f"{wait:.0f}")

    def count(self, address: str) -> None:
        """Count a failed sign-in of an address."""
        times = self._failures.pop(address, None) or deque(maxlen=MAX_FAILURES)
        times.append(self._monotonic())
        self._failures[address] = times
        if len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)
