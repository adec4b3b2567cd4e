"""Headers and content types of pages for people."""

HTML_TYPE = "text/html; charset=utf-8"
FORM_TYPE = "application/x-www-form-urlencoded"
POLICY_DIRECTIVES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data: blob:",  # images that a model made
    "media-src 'self' blob:",  # and videos
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
)
SAFE_HEADERS = {
    "content-security-policy": "; ".join(POLICY_DIRECTIVES),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
"""Headers by which a browser runs no script but those of the pages, and sends nothing to other hosts."""
FORM_PAGE_HEADERS = {
    **SAFE_HEADERS,
    "content-security-policy": SAFE_HEADERS["content-security-policy"].replace(
        "form-action 'none'", "form-action 'self'"
    ),
    "referrer-policy": "same-origin",  # without a referrer, browsers send no origin with a form either
    "cache-control": "no-store",
}
"""Headers of pages with forms, and with contents for one session."""
