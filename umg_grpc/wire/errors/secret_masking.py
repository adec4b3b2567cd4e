"""Masking of a channel's own secrets, in any form, in texts of its provider. The called channel is in a context
variable: so `clean` and the readers of errors mask each text as sent, before they shorten or change it.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Protocol
from urllib.parse import quote, quote_plus

MIN_SECRET_CHARACTERS = 6
"""Shortest secret that is masked: a shorter one would mask parts of most texts."""
MIN_WORD_CHARACTERS = 12
"""Minimum characters of a secret of letters alone that is masked inside longer words, too."""
MAX_TEXT_CHARACTERS = 1 << 16
"""Maximum characters of a text that are masked. The rest is left out, since no message is as long."""
KEY_MASK = "[key]"


class SecretMask:
    """Mask that replaces exact secrets by `[key]`, also in the forms in which providers repeat them. These are in URLs,
    in JSON, and in base64, also of a longer text (the pair of basic authentication).
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS}
        words = {secret for secret in known if len(secret) < MIN_WORD_CHARACTERS and secret.isalpha()}
        forms = {form for secret in known for form in _forms(secret)} - words
        # searched one by one: a pattern of all forms of hundreds of keys takes seconds to compile
        self._texts = sorted(forms, key=lambda form: (-len(form), form))
        self._lengths = [-len(form) for form in self._texts]
        self.longest = max(map(len, (*forms, *words)), default=1)
        """Characters of the longest form of a secret, at least 1."""
        self._bytes = [form.encode(errors="surrogateescape") for form in self._texts]
        words_pattern = rf"(?<![^\W\d_])(?:{'|'.join(map(re.escape, sorted(words)))})(?![^\W\d_])"
        self._words = re.compile(words_pattern) if words else None

    def text(self, text: str) -> str:
        for form in self._texts[bisect_left(self._lengths, -len(text)) :]:  # request ids are shorter than most forms
            if form in text:
                text = text.replace(form, KEY_MASK)
        return text if self._words is None else self._words.sub(KEY_MASK, text)

    def data(self, data: bytes) -> bytes:
        """Return a body without the secrets but for ordinary words, which are masked when the body's text is read."""
        for form in self._bytes:
            if form in data:
                data = data.replace(form, KEY_MASK.encode())
        return data


class SecretSource(Protocol):
    """Channel whose secrets may change during its use."""

    @property
    def mask(self) -> SecretMask:
        """Mask of all secrets that the channel has now."""
        ...


CHANNEL_SECRETS: ContextVar[SecretSource | None] = ContextVar("secrets of the called channel", default=None)
"""Secrets of the channel that the current task called last."""


def without_secrets(text: str) -> str:
    """Return at most the first 64 Ki characters of a provider's text, with the secrets of the called channel masked."""
    source = CHANNEL_SECRETS.get()
    if source is None:
        return text
    if len(text) <= MAX_TEXT_CHARACTERS:
        return source.mask.text(text)
    return source.mask.text(text[:MAX_TEXT_CHARACTERS])[: -source.mask.longest]  # a secret may have been cut


def body_without_secrets(body: bytes) -> bytes:
    """Return a body of the called provider, with the secrets of its channel masked."""
    source = CHANNEL_SECRETS.get()
    return body if source is None else source.mask.data(body)


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
    for encode in (b64encode, urlsafe_b64encode):
        for pair in (encoded, encoded + b":", b":" + encoded):
            yield encode(pair).decode().rstrip("=")
        yield from _inner_forms(encode(b"\0" * shift + encoded).decode() for shift in range(3))


def _inner_forms(encodings: Iterable[str]) -> Iterator[str]:
    for shift, encoded in enumerate(encodings):
        inner = encoded[(0, 2, 3)[shift] :]
        inner = inner.rstrip("=")[:-1] if inner.endswith("=") else inner
        if len(inner) >= MIN_SECRET_CHARACTERS:
            yield inner
