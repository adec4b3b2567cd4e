"""Secrets of channels are masked in every form, before texts are shortened, and ordinary words are left."""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest

from umg_grpc.wire.errors.error_message_redaction import clean
from umg_grpc.wire.errors.provider_errors import decode_error, read_error
from umg_grpc.wire.errors.secret_masking import CHANNEL_SECRETS, MAX_TEXT_CHARACTERS, SecretMask, without_secrets

SECRET = 'Zebra/crossing+"7"=~x'
PARTS = ("Zebra", "crossing", "=~x")


@dataclass(frozen=True)
class Source:
    """Channel with unchanging secrets."""

    mask: SecretMask


@pytest.fixture(autouse=True)
def called() -> Iterator[None]:
    """Set the channel whose secrets are masked."""
    token = CHANNEL_SECRETS.set(Source(SecretMask([SECRET])))
    yield
    CHANNEL_SECRETS.reset(token)


@dataclass(frozen=True)
class Form:
    id: str
    text: str


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS = [
    Form(id="itself", text=SECRET),
    Form(id="in a URL", text=quote(SECRET, safe="")),
    Form(id="in a URL in lower case", text=re.sub("%..", lambda found: found[0].lower(), quote(SECRET, safe=""))),
    Form(id="in JSON", text=json.dumps(SECRET)),
    Form(id="in JSON of JSON", text=json.dumps(json.dumps(SECRET))),
    Form(id="as the name of basic authentication", text=encoded(f"{SECRET}:")),
    Form(id="as the password of basic authentication", text=encoded(f":{SECRET}")),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_a_secret_is_masked_in_every_form(form: Form) -> None:
    masked = without_secrets(f"no: {form.text}.")
    assert "[key]" in masked
    assert form.text.strip('"\\') not in masked


@pytest.mark.parametrize("user", ["", "u", "us", "use", "user-of-the-channel"])
@pytest.mark.parametrize("end", ["", "!", "!!", "!!!"])
def test_a_secret_within_base64_of_a_longer_text_cannot_be_read(user: str, end: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(f"{user}:{SECRET}{end}".encode()).decode()
        masked = without_secrets(f"authorization: Basic {text}")
        first, last = (len(user) + 1) * 4 // 3 + 2, (len(user) + 1 + len(SECRET)) * 4 // 3 - 1
        assert not any(text[at : at + 4] in masked for at in range(first, last - 4)), masked


@pytest.mark.parametrize("position", range(0, 530, 7))
def test_a_secret_at_the_place_where_a_text_is_cut_is_masked_before_the_cut(position: int) -> None:
    text = f"{'x ' * 300}"[:position] + SECRET
    assert not any(part in clean(text) for part in PARTS)
    body = json.dumps({"error": {"message": text, "type": "invalid_request_error"}})
    error = decode_error(400, {}, body.encode())
    assert not any(part in f"{error.message} {error.metadata} {error.facts}" for part in PARTS)


@pytest.mark.parametrize("before", [MAX_TEXT_CHARACTERS - 9, 4000 - 9, 4000 - len(SECRET)])
def test_a_secret_in_a_very_long_text_is_masked_before_the_cut(before: int) -> None:
    text = SECRET * 3000 + "x" * 99 if before > 4000 else "x" * before + SECRET
    assert not any(part in read_error(json.dumps({"error": text}).encode()).message for part in PARTS)
    assert not any(part in without_secrets("y" * before + SECRET) for part in PARTS)


def test_a_secret_that_json_escapes_letter_by_letter_is_masked() -> None:
    letters = "".join(f"\\u{ord(letter):04x}" for letter in SECRET)
    error = decode_error(400, {}, f'{{"error": {{"message": "{"x " * 245}{letters}"}}}}'.encode())
    assert not any(part in f"{error.message} {error.facts}" for part in PARTS)


@dataclass(frozen=True)
class Word:
    id: str
    secret: str
    text: str
    masked: str


WORDS = [
    Word(id="five characters", secret="abc-1", text="abc-1", masked="abc-1"),
    Word(id="six characters", secret="abc-12", text="xabc-12x", masked="x[key]x"),
    Word(id="a word", secret="secret", text="the secret is wrong", masked="the [key] is wrong"),
    Word(id="a word in a longer one", secret="secret", text="a secretary", masked="a secretary"),
    Word(id="a word before a digit", secret="secret", text="secret1", masked="[key]1"),
    Word(id="twelve letters in a longer word", secret="abcdefghijkl", text="xabcdefghijklx", masked="x[key]x"),
    Word(id="a word that is part of a secret", secret="secret-1", text="a secret", masked="a secret"),
]


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.id)
def test_short_secrets_mask_no_other_words(word: Word) -> None:
    assert SecretMask([word.secret]).text(word.text) == word.masked


def test_a_text_that_is_the_secret_or_a_character_shorter_is_compared_with_all_forms_that_fit() -> None:
    mask = SecretMask(["abc-123", "abc-123456"])
    assert [mask.text(text) for text in ("abc-123", "abc-12", "xabc-123")] == ["[key]", "abc-12", "x[key]"]


def test_a_longer_secret_is_masked_before_one_that_is_a_part_of_it() -> None:
    assert SecretMask(["abc-123", "abc-123:def-456"]).text("abc-123:def-456 abc-123") == "[key] [key]"
