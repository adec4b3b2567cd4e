"""Resolution of the byte range of a file that a caller requests (`ByteRange`) against the file's size."""

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


def selected_bytes(wanted: pb.ByteRange, total: int) -> tuple[int, int]:
    """Return the requested range of a file of `total` bytes as (first byte, exclusive end); without offset and limit it
    is the whole file. Raise UmgError(RANGE_NOT_SATISFIABLE) for a range that begins at or after the end of the file.
    """
    limit = wanted.limit if wanted.HasField("limit") else None
    if not wanted.HasField("offset"):
        return (0, total) if limit is None else (max(0, total - limit), total)
    if wanted.offset >= total:
        message = f"the range begins at byte {wanted.offset}, but the file has {total} bytes"
        raise UmgError(pb.ERROR_REASON_RANGE_NOT_SATISFIABLE, message, total_bytes=str(total))
    return wanted.offset, total if limit is None else min(total, wanted.offset + limit)
