"""Check of the request headers whose values are passed on to the service, to a provider, or into a record."""

from http_facade.exchange.http_exchange import HttpExchange
from umg_grpc.wire.core.json_decoding import invalid

PASSED_ON = ("idempotency-key", "webhook-", "x-umg-", "anthropic-", "openai-", "x-goog-", "connect-", "grpc-", "trace")
"""Beginnings of the lower-case names of headers whose values are passed on. All others are only compared."""


def check_headers(exchange: HttpExchange) -> None:
    """Check that the headers whose values are passed on are UTF-8. Raise UmgError(INVALID_FIELD) with the name of a
    header that is not: its invalid bytes would become surrogates, which neither a message nor a database can contain.
    """
    headers = exchange.request.headers
    if "".join(headers.values()).isascii():
        return
    for name, value in headers.items():
        if not value.isascii() and name.lower().startswith(PASSED_ON) and _has_surrogate(value):
            exchange.is_body_unread = True
            raise invalid(name.lower(), "its value is not UTF-8; send it encoded as UTF-8, or in ASCII characters only")


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
