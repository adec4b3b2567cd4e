"""Network addresses of the form HOST:PORT."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self


@dataclass(frozen=True)
class Address:
    """Host and port to listen on or to connect to."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `HOST:PORT`; an IPv6 host is in brackets. Raises ValueError."""
        host, separator, port = text.rpartition(":")
        if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{text!r} is no HOST:PORT, such as 127.0.0.1:8080 or [::1]:0")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether the address can be reached only from this machine."""
        host = self.host.partition("%")[0]
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
