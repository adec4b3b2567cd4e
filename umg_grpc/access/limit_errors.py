"""Errors for calls that exceed a limit of their API key or model, or the key's budget: the messages name the limit."""

import math
from datetime import datetime
from typing import NamedTuple

from umg_grpc.access.limit_subjects import subject_of
from umg_grpc.base.errors import UmgError
from umg_grpc.base.micro_credits import credits_text
from umg_grpc.v1 import pb

WINDOW_SECONDS = 60
CONCURRENCY_RETRY_SECONDS = 1


def requests_exceeded(limit_id: str, limit: int, seconds: float) -> UmgError:
    """Return the error for a call beyond the requests per minute; another one is admitted in `seconds`."""
    return _exceeded(limit_id, "requests_per_minute", limit, f"has made its {limit} requests of a minute", seconds)


def tokens_exceeded(limit_id: str, limit: int, seconds: float) -> UmgError:
    """Return the error for a call beyond the tokens per minute; enough tokens are available in `seconds`."""
    return _exceeded(limit_id, "tokens_per_minute", limit, f"has used its {limit} tokens of a minute", seconds)


def concurrency_exceeded(limit_id: str, limit: int) -> UmgError:
    """Return the error for too many concurrent calls. Clients retry after a fixed time: the end of one is unknown."""
    text = f"has its {limit} concurrent requests in flight"
    return _exceeded(limit_id, "concurrent_requests", limit, text, CONCURRENCY_RETRY_SECONDS)


def request_exceeds_minute(limit_id: str, limit: int, tokens: int) -> UmgError:
    """Return the error for a request with more tokens than the `limit` of a minute, so that no retry can succeed."""
    maximum = f"the {limit} of {subject_of(limit_id)} in a minute"
    message = f"this request has about {tokens} tokens, more than {maximum}; shorten it"
    return UmgError(pb.ERROR_REASON_RATE_LIMITED, message, limit=str(limit), limit_name="tokens_per_minute")


class BudgetAmounts(NamedTuple):
    """Amounts of a budget in micro-credits when a call was refused."""

    budget: int
    spent: int
    reserved: int
    """Amount reserved by calls in flight of this process, and by video tasks."""
    leased: int
    """Amount leased by other processes, for their calls in flight or in advance."""
    needed: int
    """Least cost of the call."""


def budget_exceeded(owner: str, amounts: BudgetAmounts, period: str, reset: datetime | None) -> UmgError:
    """Return the error for a call that exceeds a budget. `owner`: "this API key", or its project or organisation;
    `reset`: begin of the next period, or None.
    """
    held = amounts.reserved + amounts.leased
    values = {"budget": amounts.budget, "spent": amounts.spent, "held": held, "needed": amounts.needed}
    texts = {name: credits_text(amount) for name, amount in values.items()}
    parts = [f"{texts['spent']} are spent"]
    if amounts.reserved:
        parts.append(f"{credits_text(amounts.reserved)} reserved by calls in flight")
    if amounts.leased:
        parts.append(f"{credits_text(amounts.leased)} leased by other processes of the gateway")
    used = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    message = (
        f"{owner} has a budget of {texts['budget']} credits{f' a {period}' if period else ''}, of which"
        f" {used}; this call needs about {texts['needed']}. "
    )
    if reset is None:
        message += "The budget is not renewed; ask the operator for a larger one"
        return UmgError(pb.ERROR_REASON_QUOTA_EXHAUSTED, message, **texts)
    time = reset.strftime("%Y-%m-%dT%H:%M:%SZ")
    return UmgError(
        pb.ERROR_REASON_QUOTA_EXHAUSTED, f"{message}The budget begins anew at {time}", **texts, reset_time=time
    )


def model_unpriced(model: str) -> UmgError:
    """Return the error for a call of a model without a price (its id or alias) with a key that has a budget."""
    message = (
        f"model: `{model}` has no price, and this API key has a budget, from which calls without a price cannot be"
        " charged. Use another model, or ask the operator to set `price` of the model, or `unpriced` to `free` or a"
        " default price, in the config"
    )
    return UmgError(pb.ERROR_REASON_MODEL_UNPRICED, message, model=model)


def _exceeded(limit_id: str, name: str, limit: int, text: str, seconds: float) -> UmgError:
    shown_seconds = max(1, math.ceil(seconds))
    return UmgError(
        pb.ERROR_REASON_RATE_LIMITED,
        f"{subject_of(limit_id)} {text}; try again in {shown_seconds} s",
        retry_after_seconds=str(shown_seconds),
        limit=str(limit),
        limit_name=name,
    )
