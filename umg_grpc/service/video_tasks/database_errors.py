"""Conversion of failures of the database in calls about video tasks to errors for callers."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.base.errors import UmgError
from umg_grpc.store.repeated_background_tasks import reason_of
from umg_grpc.store.repeated_log_lines import RepeatedLines
from umg_grpc.v1 import pb

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

log_lines = RepeatedLines(__name__)


def reports_outages(method: Callable[Parameters, Awaitable[Result]]) -> Callable[Parameters, Awaitable[Result]]:
    """Decorate a method so that it raises UmgError(UNAVAILABLE) instead of the errors of the database."""

    @wraps(method)
    async def reporting(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return await method(*args, **kwargs)
        except (SQLAlchemyError, OSError) as error:  # TimeoutError is an OSError
            log_lines.warning("the database of the tasks does not answer", reason=reason_of(error))
        message = "the database of the tasks does not answer; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1")

    return reporting
