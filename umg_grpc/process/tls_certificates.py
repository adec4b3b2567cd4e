"""TLS certificates of the HTTP and gRPC listeners: loaded from files, checked, and reloaded when the files change."""

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import structlog

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Tls
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from cryptography import x509

POLL_SECONDS = 1.0
"""Interval of the reads of the files. A notification by the system would miss changes on network filesystems."""

logger = structlog.get_logger()


@dataclass(frozen=True)
class Files:
    """Contents of a TLS config's PEM files: certificate, key, and the certificate authority of clients, if any."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None

    @classmethod
    def read(cls, tls: Tls) -> "Files":
        """Read the files that the config names. Raise UmgError(INVALID_FIELD) for a file that cannot be read."""
        return cls(
            certificate=_read("certificate", tls.certificate),
            key=_read("key", tls.key),
            client_ca=_read("client_ca", tls.client_ca) if tls.client_ca is not None else None,
        )


@dataclass(frozen=True)
class Loaded:
    """Loaded certificate in the forms that the HTTP and gRPC listeners need, and its validity period."""

    files: Files
    http: ssl.SSLContext
    grpc: grpc.ServerCertificateConfiguration
    begin_time: datetime
    expiry_time: datetime

    @property
    def problem(self) -> str:
        """Reason why clients currently reject the certificate, for example that it has expired; "" if it is valid."""
        now = datetime.now(UTC)
        if now >= self.expiry_time:
            return f"the certificate expired at {self.expiry_time:%Y-%m-%d %H:%M} UTC: clients refuse it; renew it"
        if now < self.begin_time:
            return f"the certificate is not valid before {self.begin_time:%Y-%m-%d %H:%M} UTC: check the clock"
        return ""


def load(tls: Tls) -> Loaded:
    """Load and check the config's certificate. Raise UmgError(INVALID_FIELD) that names key, file and problem."""
    files = Files.read(tls)
    certificate = _certificates("certificate", tls.certificate, files.certificate)[0]
    _check_key(tls, files.key, certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise _error("certificate", tls.certificate, f"cannot be used: {error}") from None
    if tls.client_ca is not None and files.client_ca is not None:
        _certificates("client_ca", tls.client_ca, files.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(cadata=files.client_ca.decode("ascii", "ignore"))
        except (OSError, ValueError) as error:
            raise _error("client_ca", tls.client_ca, f"cannot be used: {error}") from None
    pairs = [(files.key, files.certificate)]
    return Loaded(
        files=files,
        http=context,
        grpc=grpc.ssl_server_certificate_configuration(pairs, root_certificates=files.client_ca),
        begin_time=certificate.not_valid_before_utc,
        expiry_time=certificate.not_valid_after_utc,
    )


class Certificates:
    """Current certificate of the listeners. New connections use it; open connections are not affected by a change."""

    def __init__(self, tls: Tls) -> None:
        """Load the certificate. Raise UmgError(INVALID_FIELD) for unusable files."""
        self._tls = tls
        self._loaded = load(tls)
        self._sent_to_grpc = self._loaded
        self.is_current = True
        self._owner: asyncio.Task[None] | None = None
        self._warn()

    def http_context(self) -> ssl.SSLContext:
        """Return the TLS context for the next HTTP connection."""
        return self._loaded.http

    @property
    def expiry_time(self) -> datetime:
        """Time at which the current certificate expires."""
        return self._loaded.expiry_time

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """Return credentials for a port of a gRPC server, which reads the current certificate at each handshake."""
        return grpc.dynamic_ssl_server_credentials(
            self._loaded.grpc,
            self._changed_for_grpc,  # type: ignore[arg-type]  # documented: None is no change
            require_client_authentication=self._tls.client_ca is not None,
        )

    def reload(self) -> None:
        """Load changed files. If they are unusable, keep the current certificate, and raise UmgError(INVALID_FIELD)."""
        try:
            self._use(self._changed())
        except UmgError:
            self.is_current = False
            raise

    def start(self) -> None:
        """Start a task that loads the files again whenever they change, until `aclose`."""
        self._owner = asyncio.create_task(self._poll(), name="certificates")

    async def aclose(self) -> None:
        """Stop the task that watches the files for changes."""
        if self._owner is not None:
            self._owner.cancel()
            await asyncio.wait([self._owner])

    async def _poll(self) -> None:
        """Load changed files. Two polls in a row must find an error, logged once: files may be replaced one by one."""
        earlier = logged = ""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                self._use(await asyncio.to_thread(self._changed))
            except UmgError as error:
                if error.message == earlier != logged:
                    self.is_current = False
                    logged = error.message
                    logger.error("the certificate was not reloaded; the old one stays", problem=error.message)
                earlier = error.message
            except Exception:
                logger.exception("the certificate files cannot be checked")
            else:
                earlier = logged = ""

    def _changed(self) -> Loaded | None:
        return load(self._tls) if Files.read(self._tls) != self._loaded.files else None

    def _use(self, loaded: Loaded | None) -> None:
        self.is_current = True
        if loaded is not None:
            self._loaded = loaded
            logger.info("the certificate was reloaded", expiry_time=loaded.expiry_time.isoformat())
            self._warn()

    def _changed_for_grpc(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the certificate if it has changed since the last gRPC handshake, else None."""
        loaded = self._loaded
        if loaded is self._sent_to_grpc:
            return None
        self._sent_to_grpc = loaded
        return loaded.grpc

    def _warn(self) -> None:
        if problem := self._loaded.problem:
            logger.warning("clients cannot connect with TLS", problem=problem, file=self._tls.certificate)


def _read(key: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise _error(key, path, f"cannot be read: {error.strerror or error}") from None


def _certificates(key: str, path: str, content: bytes) -> "list[x509.Certificate]":
    from cryptography import x509  # here, as in `_check_key`: it takes 6 MB, and only listeners with TLS need it

    with suppress(ValueError):
        return x509.load_pem_x509_certificates(content)
    raise _error(key, path, "has no valid certificate in PEM format (`-----BEGIN CERTIFICATE-----`)")


def _check_key(tls: Tls, content: bytes, certificate: "x509.Certificate") -> None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(content, None)
    except TypeError:
        raise _error("key", tls.key, "is encrypted: store the key without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _error("key", tls.key, "has no valid private key in PEM format") from None
    if key.public_key() != certificate.public_key():
        message = f"does not match the first certificate in {tls.certificate}: that has another public key"
        raise _error("key", tls.key, message)


def _error(key: str, path: str, problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"tls.{key}: {path} {problem}", field=f"tls.{key}")
