"""Conversion of the errors of the administration for callers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

SETTING_NAMES = frozenset(
    name
    for settings in (pb.KeySettings, pb.AccountSettings, pb.UserSettings)
    for name in settings.DESCRIPTOR.fields_by_name
)
"""Names of fields in the settings of keys, accounts and users."""


@asynccontextmanager
async def converted_errors(*, of_settings: bool = False) -> AsyncGenerator[None, None]:
    """Convert errors: of the database to UNAVAILABLE, names of invalid settings to their paths in a request that has
    settings (`of_settings`).
    """
    try:
        yield
    except (SQLAlchemyError, OSError):  # TimeoutError is an OSError
        message = "the database does not answer; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1") from None
    except UmgError as error:
        field = error.metadata.get("field", "")
        if not of_settings or field.partition("[")[0] not in SETTING_NAMES:
            raise
        raise UmgError(error.reason, error.message, **{**error.metadata, "field": f"settings.{field}"}) from None
