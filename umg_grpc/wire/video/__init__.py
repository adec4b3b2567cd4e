"""Video tasks: the entries of the video document as faces, and the protocols of providers."""

from umg_grpc.v1 import pb
from umg_grpc.wire.video.entry_format import EntryFormat
from umg_grpc.wire.video.provider_protocol import VideoProtocol

ENTRIES: dict["pb.VideoEntry.ValueType", EntryFormat] = {}
"""Rows of the seven entries."""

VIDEO_PROTOCOLS: dict[str, VideoProtocol] = {}
"""Rows of the providers' protocols, by the name in a channel's `protocols`."""
