"""Decompression of request bodies and of enveloped messages, up to a size limit."""

import zlib

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

DECOMPRESSION_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
ZLIB_MASK, ZLIB_VALUE = 0x0F, 8  # mask and value of the first byte of a zlib stream


def decompress(body: bytes, encoding: str, limit_bytes: int) -> bytes:
    """Return the decompressed body. `encoding` is in `DECOMPRESSION_WINDOWS`. Raise UmgError: BODY_TOO_LARGE for more
    than `limit_bytes`, without decompressing the rest; MALFORMED_BODY for a body that is not one complete stream.
    """
    window = DECOMPRESSION_WINDOWS[encoding]
    if encoding == "deflate" and body and body[0] & ZLIB_MASK != ZLIB_VALUE:
        window = -zlib.MAX_WBITS  # many clients omit the zlib wrapper that the standard requires
    decompressor = zlib.decompressobj(window)
    try:
        plain = decompressor.decompress(body, limit_bytes + 1)
    except zlib.error:
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body is not compressed with {encoding}") from None
    if len(plain) > limit_bytes:
        raise too_large(limit_bytes)
    if not decompressor.eof or decompressor.unused_data:
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body is not one whole {encoding} stream")
    return plain


def too_large(limit_bytes: int) -> UmgError:
    """Return the error for a body larger than the limit, BODY_TOO_LARGE, which states the limit."""
    message = f"the body is larger than {limit_bytes} bytes ({limit_bytes / 2**20:g} MiB), the limit of this gateway"
    return UmgError(pb.ERROR_REASON_BODY_TOO_LARGE, message, limit_bytes=str(limit_bytes))
