"""Masking of a channel's own secrets, of any form, in the responses of its provider."""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus

MIN_SECRET_CHARACTERS = 6
"""Shortest secret that is masked: a shorter one would mask ordinary words."""
MASK = "[key]"


class SecretMask:
    """Replaces exact secrets, and the forms in which providers repeat them, by `[key]`: as they are, in URLs, in JSON,
    and in the base64 of basic authentication.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {form for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS for form in _forms(secret)}
        longest_first = sorted(found, key=lambda form: (-len(form), form))
        pattern = "|".join(map(re.escape, longest_first))
        self._text = re.compile(pattern) if pattern else None
        self._data = re.compile(pattern.encode()) if pattern else None

    def text(self, text: str) -> str:
        """Return the text without the secrets."""
        return text if self._text is None else self._text.sub(MASK, text)

    def data(self, data: bytes) -> bytes:
        """Return a body without the secrets."""
        return data if self._data is None else self._data.sub(MASK.encode(), data)


@lru_cache(maxsize=256)
def secret_mask(secrets: tuple[str, ...]) -> SecretMask:
    """Return the mask of the secrets, from the cache if it was made before."""
    return SecretMask(secrets)


def _forms(secret: str) -> Iterator[str]:
    encoded = secret.encode(errors="surrogateescape")
    yield secret
    for quoted in (quote(encoded, safe=""), quote_plus(encoded), quote(encoded)):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)
    for is_ascii in (True, False):
        written = json.dumps(secret, ensure_ascii=is_ascii)[1:-1]
        yield written
        yield written.replace("/", "\\/")
        yield json.dumps(written)[1:-1]  # JSON in a text of JSON
    for pair in (encoded, encoded + b":", b":" + encoded):
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(pair).decode().rstrip("=")
