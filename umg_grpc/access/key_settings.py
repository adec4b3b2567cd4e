"""Settings of an API key that an operator can change, and their validation."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from umg_grpc.access.budget_settings import Budget, check_budget, check_budgets
from umg_grpc.access.key_permissions import PERMITTED_OPERATIONS
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

BOOTSTRAP_KEY = "bootstrap"
"""Name of the key that `bootstrap_key.py` creates."""

ISSUED_CALLER_PREFIX = "jwt_"
"""Beginning of the ids of callers whose credentials are tokens of an issuer."""

KEY_PREFIX = "sk-umg-"
"""Beginning of the secrets of keys."""
SHOWN_CHARACTERS = len(KEY_PREFIX) + 4
"""Characters of a secret that are shown at most."""
SECRET_OR_ID = re.compile(rf"{KEY_PREFIX}|(?:key|jwt)_[0-9a-f]+\Z")
"""Beginning of names that could be meant as another key's secret, prefix or id."""
MAX_NAME_CHARACTERS = 100
MAX_OWNER_CHARACTERS = 200
MAX_PATTERNS = 1000
MAX_PATTERN_CHARACTERS = 256
MAX_REQUESTS_PER_MINUTE = 1_000_000
MAX_TOKENS_PER_MINUTE = 1_000_000_000
MAX_CONCURRENT_REQUESTS = 10_000
MAX_TAGS = 50
TAG_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}")
MAX_TAG_CHARACTERS = 256
MAX_ECHOED_NAME = 80
"""Characters of the invalid name of a tag that the error repeats."""


class KeyFields(TypedDict, total=False):
    """Permissions and limits of an API key, by the names of their columns and of fields in `umg.v1.KeySettings`."""

    model_patterns: Collection[str]
    operations: Collection[str]
    channels: Collection[str]
    administrator: bool
    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent_requests: int | None
    budget_micro_credits: int | None
    budget_period: str
    budgets: Collection[Budget]
    expire_time: datetime | None
    show_route: bool
    owner: str
    tags: Mapping[str, str]
    project_id: str
    user_id: str


class NamedKeyFields(KeyFields, total=False):
    """Permissions and limits of an API key, and its name."""

    name: str


def check_fields(fields: NamedKeyFields, now: datetime) -> None:
    """Raise UmgError(INVALID_FIELD) for the first setting that is invalid. `now`: time that the expiry must follow."""
    if "name" in fields:
        _check_name(fields["name"])
    _check_patterns("model_patterns", "model pattern", "`gpt-4o`, `famG-*`", fields.get("model_patterns", ()))
    _check_patterns("channels", "channel's name", "`openai`, `azure-*`", fields.get("channels", ()))
    _check_operations([*fields.get("operations", ())])
    _check_limit("requests_per_minute", MAX_REQUESTS_PER_MINUTE, fields.get("requests_per_minute"))
    _check_limit("tokens_per_minute", MAX_TOKENS_PER_MINUTE, fields.get("tokens_per_minute"))
    _check_limit("concurrent_requests", MAX_CONCURRENT_REQUESTS, fields.get("concurrent_requests"))
    budget, period = fields.get("budget_micro_credits"), fields.get("budget_period", "")
    check_budget("budget_micro_credits", budget, period, "budget_period")
    check_budgets(fields.get("budgets", ()))
    _check_expiry(fields.get("expire_time"), now)
    owner = fields.get("owner", "")
    if len(owner) > MAX_OWNER_CHARACTERS or not owner.isprintable() or owner != owner.strip():
        raise _invalid("owner", f"an owner has at most {MAX_OWNER_CHARACTERS} printable characters, no space at an end")
    _check_tags(fields.get("tags", {}))


def set_columns(row: object, fields: Mapping[str, object], elsewhere: str) -> None:
    """Set the columns of a row of the database to settings. `elsewhere`: setting that its repository assigns itself."""
    for column, value in fields.items():
        if column != elsewhere:
            setattr(row, column, list(value) if isinstance(value, (list, tuple, set, frozenset)) else value)


def _check_operations(operations: Sequence[str]) -> None:
    for index, operation in enumerate(operations):
        if operation not in PERMITTED_OPERATIONS:
            message = f"`{operation}` is not an operation; choose from {', '.join(PERMITTED_OPERATIONS)}"
            raise _invalid(f"operations[{index}]", message)
        if operation in operations[:index]:
            raise _invalid(f"operations[{index}]", f"`{operation}` is in the list before; name it once")


def _check_name(name: str) -> None:
    if not (0 < len(name) <= MAX_NAME_CHARACTERS and name.isprintable() and name == name.strip()):
        raise _invalid("name", f"a name has 1 to {MAX_NAME_CHARACTERS} printable characters and no space at its ends")
    if name == BOOTSTRAP_KEY:
        raise _invalid("name", f"`{BOOTSTRAP_KEY}` is the name of the gateway's own first key; choose another")
    if SECRET_OR_ID.match(name):
        message = "it looks like the secret, the prefix or the id of a key, by which keys are named too; choose another"
        raise _invalid("name", message)


def _check_limit(field: str, maximum: int, limit: int | None) -> None:
    if limit is not None and not 1 <= limit <= maximum:
        raise _invalid(field, f"{field.replace('_', ' ')} are 1 to {maximum}; leave it out for no limit")


def _check_expiry(expire_time: datetime | None, now: datetime) -> None:
    if expire_time is not None and expire_time.tzinfo is None:
        raise _invalid("expire_time", "the time of expiry needs a zone: 2027-01-31T12:00:00Z")
    if expire_time is not None and expire_time < now:
        raise _invalid("expire_time", "the time of expiry is in the past; give a later one")


def _check_patterns(field: str, noun: str, examples: str, patterns: Collection[str]) -> None:
    if len(patterns) > MAX_PATTERNS:
        raise _invalid(field, f"at most {MAX_PATTERNS} {noun}s")
    for index, pattern in enumerate(patterns):
        if not 0 < len(pattern) <= MAX_PATTERN_CHARACTERS or any(letter.isspace() for letter in pattern):
            message = f"a {noun} has 1 to {MAX_PATTERN_CHARACTERS} characters and no spaces: {examples}"
            raise _invalid(f"{field}[{index}]", message)


def _check_tags(tags: Mapping[str, str]) -> None:
    if len(tags) > MAX_TAGS:
        raise _invalid("tags", f"at most {MAX_TAGS} tags")
    for name, value in tags.items():
        if TAG_NAME.fullmatch(name) is None:
            message = "the name of a tag has 1 to 64 letters, digits and any of `_./-`: team=search"
            raise _invalid("tags", f"{message}; correct `{printable(name[:MAX_ECHOED_NAME])}`")
        if len(value) > MAX_TAG_CHARACTERS or not value.isprintable():
            raise _invalid(
                "tags", f"the value of the tag `{name}` has at most {MAX_TAG_CHARACTERS} printable characters"
            )


def _invalid(field: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=field)
