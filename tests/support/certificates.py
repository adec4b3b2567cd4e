"""Certificate files of a gateway under test, replaced as certbot and Kubernetes do."""

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import grpc
import trustme

NAMES = ("localhost", "127.0.0.1")


@dataclass
class CertificateFiles:
    """Files `tls.crt` and `tls.key` in a folder that is a symbolic link, with their authority."""

    folder: Path
    authority: trustme.CA = field(default_factory=trustme.CA)
    clients: trustme.CA = field(default_factory=trustme.CA)
    _numbers: "count[int]" = field(default_factory=count)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.replace()
        self.client_ca.write_bytes(self.clients.cert_pem.bytes())
        (self.folder / "ca.crt").write_bytes(self.authority.cert_pem.bytes())

    @property
    def certificate(self) -> Path:
        return self.folder / "live" / "tls.crt"

    @property
    def key(self) -> Path:
        return self.folder / "live" / "tls.key"

    @property
    def client_ca(self) -> Path:
        return self.folder / "clients.crt"

    @property
    def config(self) -> str:
        """Config lines that serve TLS without client certificates."""
        return f"tls: {{certificate: {self.certificate}, key: {self.key}}}\n"

    @property
    def mutual_config(self) -> str:
        """Config lines that serve TLS with client certificates."""
        return f"tls: {{certificate: {self.certificate}, key: {self.key}, client_ca: {self.client_ca}}}\n"

    def issue(self, expiry_time: datetime | None = None) -> tuple[bytes, bytes]:
        issued = self.authority.issue_cert(*NAMES, not_after=expiry_time)
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        return chain, issued.private_key_pem.bytes()

    def replace(self, expiry_time: datetime | None = None) -> None:
        """Replace both files at once, by a new target of the link."""
        target = self.folder / f"version-{next(self._numbers)}"
        target.mkdir()
        certificate, key = self.issue(expiry_time)
        (target / "tls.crt").write_bytes(certificate)
        (target / "tls.key").write_bytes(key)
        link = self.folder / "link"
        link.symlink_to(target.name)
        link.rename(self.folder / "live")

    def served_certificate(self) -> bytes:
        """Return the first certificate of the file, in DER."""
        pem = self.certificate.read_text(encoding="ascii")
        return ssl.PEM_cert_to_DER_cert(pem[: pem.index("-----END") + len("-----END CERTIFICATE-----\n")])

    def client_context(self, *, certificate: bool = False) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())
        if certificate:
            self.clients.issue_cert("client@umg.example").configure_cert(context)
        return context

    def channel_credentials(self, *, certificate: bool = False) -> grpc.ChannelCredentials:
        """Return the gRPC credentials of a client, which may have a certificate."""
        authorities = self.authority.cert_pem.bytes()
        if not certificate:
            return grpc.ssl_channel_credentials(authorities)
        issued = self.clients.issue_cert("client@umg.example")
        chain = issued.cert_chain_pems[0].bytes()
        return grpc.ssl_channel_credentials(authorities, issued.private_key_pem.bytes(), chain)


def rewrite(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    hidden = path.with_suffix(".new")
    hidden.write_bytes(content)
    hidden.rename(path)


LONG_AGO = datetime(2020, 1, 31, 12, tzinfo=UTC)
