"""Video tasks: the seven HTTP APIs for callers, and the protocols of providers."""

from urllib.parse import urlsplit

from umg_grpc.v1 import pb
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.providers.umg_gateway_protocol import UMG_VIDEO
from umg_grpc.wire.video.providers.vid_a_protocol import VID_A
from umg_grpc.wire.video.providers.vid_b_protocol import VID_B, VID_B_GEMINI
from umg_grpc.wire.video.providers.vid_c_protocol import VID_C
from umg_grpc.wire.video.providers.vid_d_protocol import VID_D
from umg_grpc.wire.video.providers.vid_e_protocol import VID_E
from umg_grpc.wire.video.providers.vid_f_protocol import VID_F
from umg_grpc.wire.video.providers.vid_g_protocol import VID_G
from umg_grpc.wire.video.providers.xai_videos import VID_A_XAI
from umg_grpc.wire.video.unified_caller_api import UNIFIED_FORMAT
from umg_grpc.wire.video.vid_d_caller_api import ENTRY_D
from umg_grpc.wire.video.vid_e_3_caller_api import ENTRY_E_3
from umg_grpc.wire.video.vid_e_v1_caller_api import ENTRY_E_V1
from umg_grpc.wire.video.vid_f_caller_api import ENTRY_F
from umg_grpc.wire.video.vid_g_caller_api import ENTRY_G
from umg_grpc.wire.video.video_object_caller_api import VIDEO_OBJECT

XAI_HOST = "api.x.ai"
"""Host of xAI, which has a variant of `vidA`."""
ENTRY_FORMATS: dict["pb.VideoEntry.ValueType", EntryFormat] = {
    row.entry: row for row in (UNIFIED_FORMAT, VIDEO_OBJECT, ENTRY_D, ENTRY_E_V1, ENTRY_E_3, ENTRY_F, ENTRY_G)
}
"""Number of an HTTP API for callers of video tasks -> its functions."""

VIDEO_FACES: dict[str, EntryFormat] = {row.name: row for row in ENTRY_FORMATS.values()}

VIDEO_PROTOCOLS: dict[str, VideoProtocol] = {
    protocol.name: protocol for protocol in (VID_A, VID_B, VID_C, VID_D, VID_E, VID_F, VID_G, UMG_VIDEO)
}
"""Name in a channel's `protocols` -> protocol of a video provider."""


def video_protocol(name: str, base_url: str) -> VideoProtocol:
    """Return the video protocol of a channel; its `base_url` selects the variant. `vidB` is the variant for Vertex AI
    if the URL contains `/publishers/`, else for the Gemini API. `vidA` has a variant for xAI's host.
    """
    protocol = VIDEO_PROTOCOLS[name]
    if protocol is VID_A and urlsplit(base_url).hostname == XAI_HOST:
        return VID_A_XAI
    return VID_B_GEMINI if protocol is VID_B and "/publishers/" not in base_url else protocol
