"""Check of the masks by which requests select the settings that they change."""

from collections.abc import Collection

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


def check_mask(paths: Collection[str], names: Collection[str], problem: str = "is no field of the settings") -> None:
    """Raise UmgError(INVALID_FIELD) for an empty mask, and for a path that is none of `names`, which has the
    `problem`.
    """
    unknown = [path for path in paths if path not in names]
    if unknown or not paths:
        found = f"`{unknown[0]}` {problem}" if unknown else "name at least one field to change"
        message = f"update_mask: {found}; name some of {', '.join(names)}"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="update_mask")
