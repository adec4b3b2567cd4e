"""Preferences of a person for all pages, which cookies of the browser keep."""

from collections.abc import Mapping

from aiohttp import web

PAGE_PREFERENCES: Mapping[str, tuple[str, ...]] = {
    "theme": ("system", "light", "dark"),
    "moments": ("relative", "utc", "local"),
    "letters": ("on", "off"),
}
"""Preference -> its values, the usual one first."""
COOKIE_PREFIX = "umg_"
KEPT_SECONDS = 365 * 86400


def preferences_of(request: web.BaseRequest) -> Mapping[str, str]:
    """Return the value of each preference."""
    given = {name: request.cookies.get(f"{COOKIE_PREFIX}{name}", "") for name in PAGE_PREFERENCES}
    return {name: given[name] if given[name] in values else values[0] for name, values in PAGE_PREFERENCES.items()}


def keep_preferences(response: web.Response, form: Mapping[str, str]) -> None:
    """Keep those of a form that have one of their values."""
    for name, values in PAGE_PREFERENCES.items():
        if form.get(name) in values:
            response.set_cookie(f"{COOKIE_PREFIX}{name}", form[name], max_age=KEPT_SECONDS, samesite="Lax")
