"""Wire formats, as pure codecs: each is one row of `FORMATS`."""

from umg_grpc.wire.chat import CHAT
from umg_grpc.wire.format import TextFormat

FORMATS: dict[str, TextFormat] = {
    CHAT.name: CHAT,
}
