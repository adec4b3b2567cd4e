"""Form of URLs without the secrets in them."""

from urllib.parse import urlsplit


def shown_url(url: str) -> str:
    """Return a URL without user name, password, query and fragment; a text that is no URL becomes ""."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else ""
    except ValueError:  # half an IPv6 address
        return ""
