"""Video tasks: the seven HTTP APIs for callers (the entries of the video document), and the protocols of providers."""

from umg_grpc.v1 import pb
from umg_grpc.wire.video.entry_d import ENTRY_D
from umg_grpc.wire.video.entry_e_3 import ENTRY_E_3
from umg_grpc.wire.video.entry_e_v1 import ENTRY_E_V1
from umg_grpc.wire.video.entry_f import ENTRY_F
from umg_grpc.wire.video.entry_format import EntryFormat
from umg_grpc.wire.video.entry_g import ENTRY_G
from umg_grpc.wire.video.entry_unified import UNIFIED
from umg_grpc.wire.video.entry_video_object import VIDEO_OBJECT
from umg_grpc.wire.video.provider_protocol import VideoProtocol
from umg_grpc.wire.video.providers.umg_video import UMG_VIDEO
from umg_grpc.wire.video.providers.vid_a import VID_A
from umg_grpc.wire.video.providers.vid_b import VID_B, VID_B_GEMINI
from umg_grpc.wire.video.providers.vid_c import VID_C
from umg_grpc.wire.video.providers.vid_d import VID_D
from umg_grpc.wire.video.providers.vid_e import VID_E
from umg_grpc.wire.video.providers.vid_f import VID_F
from umg_grpc.wire.video.providers.vid_g import VID_G

ENTRIES: dict["pb.VideoEntry.ValueType", EntryFormat] = {
    row.entry: row for row in (UNIFIED, VIDEO_OBJECT, ENTRY_D, ENTRY_E_V1, ENTRY_E_3, ENTRY_F, ENTRY_G)
}
"""Rows of the seven entries."""

VIDEO_FACES: dict[str, EntryFormat] = {row.name: row for row in ENTRIES.values()}
"""The same rows by the names of their faces."""

VIDEO_PROTOCOLS: dict[str, VideoProtocol] = {
    protocol.name: protocol for protocol in (VID_A, VID_B, VID_C, VID_D, VID_E, VID_F, VID_G, UMG_VIDEO)
}
"""Rows of the providers' protocols, by the name in a channel's `protocols`."""


def video_protocol(name: str, base_url: str) -> VideoProtocol:
    """Return the protocol of a channel. `vidB` has two variants: Vertex AI if the base URL contains `/publishers/`,
    else the Gemini API.
    """
    protocol = VIDEO_PROTOCOLS[name]
    return VID_B_GEMINI if protocol is VID_B and "/publishers/" not in base_url else protocol
