"""Wire formats, as pure codecs: each is one row of `FORMATS`."""

from umg_grpc.wire.chat import CHAT
from umg_grpc.wire.format import TextFormat
from umg_grpc.wire.messages import MESSAGES
from umg_grpc.wire.native import NATIVE
from umg_grpc.wire.responses import RESPONSES

FORMATS: dict[str, TextFormat] = {
    CHAT.name: CHAT,
    MESSAGES.name: MESSAGES,
    NATIVE.name: NATIVE,
    RESPONSES.name: RESPONSES,
}
