"""Values of the fields of forms."""

import hashlib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from google.protobuf.message import Message

from umg_grpc.base.errors import UmgError
from umg_grpc.base.micro_credits import MICRO_CREDITS, without_thousands
from umg_grpc.v1 import pb

MAX_CREDITS = Decimal(9_000_000_000_000)
MAX_NUMBER = 2**31 - 1  # of the fields of the schema that forms set
SEEN_FIELD = "seen"
LIMIT_FIELDS = ("requests_per_minute", "tokens_per_minute", "concurrent_requests")


def text(form: Mapping[str, str], name: str) -> str:
    """Return a text without spaces around it; "" for an empty field."""
    return form.get(name, "").strip()


def names(form: Mapping[str, str], name: str) -> list[str]:
    """Return a list of names, between which a field has commas or line ends."""
    return [each.strip() for each in form.get(name, "").replace("\n", ",").split(",") if each.strip()]


def number(form: Mapping[str, str], name: str) -> int | None:
    """Return a whole number; None for an empty field. Raise UmgError(INVALID_FIELD)."""
    if not (given := text(form, name)):
        return None
    try:
        found = int(without_thousands(given))
    except ValueError:
        raise _invalid(name, "a whole number, such as 60", given) from None
    if abs(found) > MAX_NUMBER:
        raise _invalid(name, f"a whole number of at most {MAX_NUMBER}", given)
    return found


def micro_credits(form: Mapping[str, str], name: str) -> int | None:
    """Return an amount of credits as micro-credits; None for an empty field. Raise UmgError(INVALID_FIELD)."""
    if not (given := text(form, name)):
        return None
    try:
        amount = Decimal(without_thousands(given))
    except InvalidOperation:
        raise _invalid(name, "an amount of credits, such as 12.50", given) from None
    micros = amount * MICRO_CREDITS if amount.is_finite() and 0 <= amount <= MAX_CREDITS else None
    if micros is None or micros != micros.to_integral_value():
        raise _invalid(name, "an amount of credits from 0 on with at most six decimals", given)
    return int(micros)


def limits(form: Mapping[str, str]) -> dict[str, object]:
    """Return the limits and models of a key or an account by their names in JSON; None removes a limit."""
    found: dict[str, object] = {name: number(form, name) for name in LIMIT_FIELDS if name in form}
    return found | ({"model_patterns": names(form, "models")} if "models" in form else {})


def check_typed(form: Mapping[str, str], name: str, expected: str) -> None:
    """Raise UmgError(INVALID_FIELD) unless a field confirms an act by the name of its object."""
    if text(form, name) != expected:
        message = f"not done: type `{expected}` to confirm"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=name)


def version(*settings: Message) -> str:
    """Return a text that differs once settings were changed, for the field `SEEN_FIELD` of the form that shows them."""
    texts = sorted(each.SerializeToString(deterministic=True) for each in settings)  # rows of a table have no order
    return hashlib.blake2b(b"".join(texts), digest_size=8).hexdigest()


def check_seen(form: Mapping[str, str], *settings: Message) -> None:
    """Raise UmgError(ALREADY_EXISTS) if settings were changed since the form was shown, which else takes that back."""
    if form.get(SEEN_FIELD, version(*settings)) != version(*settings):
        message = "not saved: someone changed this since the page was loaded; compare your entries, then save again"
        raise UmgError(pb.ERROR_REASON_ALREADY_EXISTS, message)


def _invalid(name: str, expected: str, given: str) -> UmgError:
    message = f"not saved: `{name}` must be {expected}, not `{given[:50]}`"
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=name)
