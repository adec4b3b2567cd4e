"""Texts of commands about changed settings of channels."""

from umg_grpc.cli.time_texts import time_text
from umg_grpc.v1 import pb


def change_text(override: pb.ChannelOverride) -> str:
    """Return an override as text: `disabled by ada, 2026-11-30T13:41:02Z: unpaid`."""
    change = override.setting if override.setting == "disabled" else f"{override.setting} {override.value}"
    note = f": {override.note}" if override.note else ""
    reason = f" (without effect: {override.ineffective_reason})" if override.ineffective_reason else ""
    return f"{change} by {override.actor_name}, {time_text(override.update_time)}{note}{reason}"
