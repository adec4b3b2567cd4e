"""Options that callers of the 1.x models of family `vidD` write inside the prompt: `--ratio 16:9 --dur 5`."""

import re

from umg_grpc.wire.core.json_decoding import echo, invalid
from umg_grpc.wire.video.submission_body_reader import CreateBody, Member, WholeNumber

OPTION_MARKERS = {
    "ratio": Member("aspect_ratio", str),
    "dur": Member("duration_seconds", WholeNumber),
    "duration": Member("duration_seconds", WholeNumber),
    "rs": Member("resolution", str),
    "resolution": Member("resolution", str),
    "fps": Member("frames_per_second", WholeNumber),
    "seed": Member("seed", WholeNumber),
    "wm": Member("watermark", bool),
    "watermark": Member("watermark", bool),
    "cf": Member("camera_fixed", bool),
    "camerafixed": Member("camera_fixed", bool),
}
_MARKER = re.compile(r"(?:^|(?<=\s))--([A-Za-z][\w=]*)(?:\s+((?!--)\S+))?")
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_FLAGS = {"true": True, "false": False}


def read_markers(body: CreateBody, text: str, path: str) -> str:
    """Set the parameters for the options in a prompt, and return the prompt without the options. Raise
    UmgError(INVALID_FIELD) for an unknown option, and for a wrong or missing value.
    """
    for found in _MARKER.finditer(text):
        name, value = found.groups()
        if name not in OPTION_MARKERS:
            known = ", ".join(f"--{marker}" for marker in OPTION_MARKERS)
            raise invalid(path, f"`--{echo(name)}` is no marker; the markers are {known}")
        parameter, kind = OPTION_MARKERS[name]
        body.set(parameter, _decode(kind, value, name, path), f"{path} (--{name})")
    return " ".join(_MARKER.sub("", text).split()) if _MARKER.search(text) else text


def _decode(kind: type, value: str | None, name: str, path: str) -> str | int:
    if value is None:
        raise invalid(path, f"`--{name}` has no value; add it, such as `--dur 5`")
    if kind is WholeNumber:
        if not _WHOLE.fullmatch(value):
            raise invalid(path, f"`--{name}` expects a whole number, got {echo(value)}; correct it")
        return int(value)
    if kind is bool:
        if value not in _FLAGS:
            raise invalid(path, f"`--{name}` expects true or false, got {echo(value)}; correct it")
        return _FLAGS[value]
    return value
