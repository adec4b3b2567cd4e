"""Conversion of the errors of the administration for callers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


@asynccontextmanager
async def converted_errors() -> AsyncGenerator[None, None]:
    """Convert errors: of the database to UNAVAILABLE, names of invalid fields to their paths in the request."""
    try:
        yield
    except (SQLAlchemyError, OSError):  # TimeoutError is an OSError
        message = "the database does not answer; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1") from None
    except UmgError as error:
        field = error.metadata.get("field", "")
        if field.partition("[")[0] not in pb.KeySettings.DESCRIPTOR.fields_by_name:
            raise
        raise UmgError(error.reason, error.message, **{**error.metadata, "field": f"settings.{field}"}) from None
