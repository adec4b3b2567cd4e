"""Error for an object that is not found, but that another process may not have written yet, since the database was
unavailable. Its rows are written within seconds after an outage; until then, an absent row does not mean that the
object does not exist.
"""

from umg_grpc.base.errors import UmgError
from umg_grpc.store.table_definitions import MAX_OBJECT_ID_CHARACTERS
from umg_grpc.v1 import pb


def unwritten(object_id: str, *, field: str = "") -> UmgError:
    """Return the error for an object that may not be in the database yet. `field`: path of its id, or ""."""
    shown = object_id[:MAX_OBJECT_ID_CHARACTERS]
    message = (
        f"'{shown}' is not found, but the database was away until a moment ago and may not have all objects yet; try "
        "again"
    )
    named = {"field": field} if field else {}
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1", **named)
