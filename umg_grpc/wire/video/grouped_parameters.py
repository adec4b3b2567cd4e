"""Parameters that the bodies of one HTTP API put into groups of members."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.video.providers.request_encoding import members_of

SOUND_VALUES = {b'"native"': True, b'"off"': False}
"""Value of `settings.audio` -> whether the video has a sound track that the model makes."""
SWITCH_VALUES = {b"true": True, b"false": False}


def read_nested(parameters: pb.VideoParameters) -> None:
    """Move sound and watermark from the additional fields `settings.audio` and `options.watermark_info` to parameters.
    So each vendor gets them in its own form, and their price is charged. Other additional fields stay.
    """
    extra = members_of(Raw(parameters.extra_json.encode()))
    settings, options = members_of(extra.get("settings")), members_of(extra.get("options"))
    sound = SOUND_VALUES.get(bytes(settings.get("audio", b"")))
    mark = members_of(options.get("watermark_info"))
    enabled = SWITCH_VALUES.get(bytes(mark.get("enabled", b""))) if len(mark) == 1 else None
    if sound is not None and not parameters.HasField("generate_audio"):
        parameters.generate_audio = sound
        del settings["audio"]
    if enabled is not None and not parameters.HasField("watermark"):
        parameters.watermark = enabled
        del options["watermark_info"]
    if sound is None and enabled is None:
        return
    kept = {**extra, "settings": settings, "options": options}
    rest = {name: value for name, value in kept.items() if value != {}}
    parameters.extra_json = msgspec.json.encode(rest).decode() if rest else ""
