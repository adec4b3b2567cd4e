"""Form of config values without the secrets in them: masked secrets, URLs without credentials."""

import re
from collections.abc import Iterator, Mapping

REFERENCE_MARK = "\0"
"""Character around the name of a variable in values that are read by `References`; no YAML file contains it."""
MASK_TEXT = "••••"
SHOWN_END, SHORTEST_WITH_END = 4, 20
"""Number of last characters of a secret that are shown, and the least length of a secret of which they are shown."""
SECRET_KEYS = frozenset(
    {
        *("secret", "accepted_secrets", "metrics.key"),
        *("channels.api_key", "channels.headers", "channels.query"),
        *("channels.auth.command", "channels.auth.client_secret", "channels.auth.external_id"),
        *("guards.headers", "sign_on.issuers.client_secret"),
        *("alerts.receivers.secret", "alerts.receivers.username", "alerts.receivers.password"),
    }
)
"""Keys whose values are secret, as paths without positions and ids. Values of a mapping are masked one by one, and the
arguments of a command after the program.
"""
ORIGIN_KEYS = frozenset({"alerts.receivers.url", "guards.url"})
"""Keys with URLs whose path may be a secret (Slack's incoming webhooks): only scheme, host and port are shown."""
_REFERENCE = re.compile(f"{REFERENCE_MARK}([^{REFERENCE_MARK}]*){REFERENCE_MARK}")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


class References(Mapping[str, str]):
    """Environment for reading a file as it is written: the value of each variable is a reference to it."""

    def __getitem__(self, name: str) -> str:
        return f"{REFERENCE_MARK}{name}{REFERENCE_MARK}"

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, name: object) -> bool:
        return True


def variables_in(written: str) -> list[str]:
    """Return the names of the variables to which a value refers, each once."""
    return list(dict.fromkeys(_REFERENCE.findall(written)))


def shown_text(key: str, written: str) -> str:
    """Return a value as it may be shown: references as `${NAME}`, secrets masked, URLs without user, password, query
    and fragment. `key`: path of the key without positions and ids.
    """
    if key in SECRET_KEYS:
        return masked(written)
    text = _REFERENCE.sub(r"${\1}", written)
    if (url := _URL.fullmatch(text)) is None:
        return text
    place = re.split(r"[?#]", url[2].rpartition("@")[2])[0]
    if key in ORIGIN_KEYS:
        place, slash, _ = place.partition("/")
        place += f"/{MASK_TEXT}" if slash else ""
    return f"{url[1]}://{place}"


def masked(written: str) -> str:
    """Return a secret masked, with its last characters if it is long enough; its references stay."""
    if not _REFERENCE.search(written):
        return MASK_TEXT + (written[-SHOWN_END:] if len(written) >= SHORTEST_WITH_END else "")
    parts = _REFERENCE.split(written)  # texts and names in turn
    return "".join(f"${{{part}}}" if place % 2 else MASK_TEXT if part else "" for place, part in enumerate(parts))


def is_secret(key: str) -> bool:
    """Return whether the values of a key are masked."""
    return key in SECRET_KEYS
