"""Report of the proxies in a config for people: for each proxy its source and the calls that use it."""

from umg_grpc.base.printable_text import printable
from umg_grpc.base.proxy_rules import Proxy
from umg_grpc.config import Config
from umg_grpc.config.channel_proxies import channel_proxy

SHOWN_CHANNELS = 8
OF_CALLERS = "URLs of callers, result files, callbacks"


def proxy_lines(config: Config) -> list[str]:
    """Return a line for each proxy: URL without credentials, the setting or variable that has it, and its channels."""
    channels: dict[Proxy, list[str]] = {}
    for channel in config.channels:
        found = (channel_proxy(channel, config.proxies, url) for url in channel.addresses)
        for proxy in dict.fromkeys(each for each in found if each is not None):
            channels.setdefault(proxy, []).append(channel.name)
    lines = [_line(proxy, _names(names)) for proxy, names in channels.items()]
    if (of_callers := config.egress.proxies.https) is not None:
        lines.append(_line(of_callers, OF_CALLERS))
    return lines


def _line(proxy: Proxy, calls: str) -> str:
    return printable(f"{proxy.shown} ({proxy.source}): {calls}")


def _names(names: list[str]) -> str:
    more = len(names) - SHOWN_CHANNELS
    return ", ".join(names[:SHOWN_CHANNELS]) + (f" and {more} more" if more > 0 else "")
