"""Models that their vendors have shut down: removal of their channels, and the error for a call of them."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_retirement_dates import Retirement
from umg_grpc.routing.channel_target import Target
from umg_grpc.v1 import pb


def day_of(now: Callable[[], float] | None) -> date | None:
    """Return the current day in UTC; None without a clock. `now`: returns Unix seconds."""
    return None if now is None else datetime.fromtimestamp(now(), UTC).date()


def in_service(targets: Sequence[Target], today: date) -> list[Target]:
    """Return the targets whose vendors still have their models."""
    return [each for each in targets if each.retirement is None or not each.retirement.refuses(today)]


def retired(model: str, targets: Sequence[Target], today: date) -> UmgError:
    """Return the error for a model that all its vendors shut down, with the replacement if the id is a vendor's."""
    gone = [(row, each.model) for each in targets if (row := each.retirement) is not None and row.refuses(today)]
    row, upstream = max(gone, key=lambda pair: pair[0].day)
    message = f"The model `{model}` {row.text(with_successor=upstream == model)}."
    return UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, message, model=model)


def common_retirement(targets: Sequence[Target]) -> Retirement | None:
    """Return the latest retirement date of a model among its channels; None if a channel has none."""
    rows = [each.retirement for each in targets if each.retirement is not None]
    return max(rows, key=lambda row: row.day) if rows and len(rows) == len(targets) else None
