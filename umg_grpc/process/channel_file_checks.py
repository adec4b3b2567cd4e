"""Checks and reads of the files and programs that channels of a config name: certificates, service accounts, commands.
Needs no modules that call providers, so that commands can use it quickly.
"""

import os
import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from umg_grpc.config import Channel, CloudAuth, CommandAuth, GoogleAuth, ServiceAccountAuth

if TYPE_CHECKING:
    from umg_grpc.upstream.http.signing.service_account import ServiceAccount


class _GoogleFile(msgspec.Struct):
    type: str


GOOGLE_FILE = "expected the JSON file of credentials, with `type`"
AUTHORITY_FILE, AUTHORITY_FOLDERS = "SSL_CERT_FILE", "SSL_CERT_DIR"
"""Variables that OpenSSL reads."""
EXTRA_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "aws": ("botocore",),
    "google": ("google.auth", "requests"),
    "azure": ("azure.identity",),
}
"""Extra for a cloud -> packages that it installs."""


def check_files(channel: Channel) -> None:
    """Check that the files and programs of a channel can be used. Raise OSError if one cannot."""
    tls_context(channel)
    if isinstance(channel.auth, CloudAuth):
        if (file := own_account_file(channel.auth)) is not None:
            service_account(channel, file)
        else:
            check_extra(channel, channel.auth)
    if isinstance(channel.auth, ServiceAccountAuth):
        service_account(channel, channel.auth.file)
    if isinstance(channel.auth, CommandAuth):
        from umg_grpc.upstream.http.signing.token_command import find_program  # here: slow to import

        try:
            find_program(channel.auth.command)
        except OSError as error:
            raise OSError(f"channel {channel.name}: auth.command: {error}") from None


def is_installed(extra: str) -> bool:
    """Return whether the packages of the extra for a cloud are installed. `extra`: its name, a kind of `auth`."""
    try:
        return all(find_spec(package) is not None for package in EXTRA_PACKAGES[extra])
    except ModuleNotFoundError:  # of the parent package
        return False


def installed_clouds() -> tuple[str, ...]:
    """Return the kinds of `auth` whose libraries of clouds are installed."""
    return tuple(filter(is_installed, EXTRA_PACKAGES))


def own_account_file(auth: CloudAuth) -> str | None:
    """Return the service account's key file that is read without Google's library; None for any other `auth`."""
    if not isinstance(auth, GoogleAuth) or is_installed("google"):
        return None
    return auth.file if auth == GoogleAuth(file=auth.file, scopes=auth.scopes) else None


def check_extra(channel: Channel, auth: CloudAuth) -> None:
    """Check that the library of the cloud is installed, and can read a configured file. Raise OSError if not."""
    kind = str(auth.__struct_config__.tag)
    if not is_installed(kind):
        command = f"pip install 'unified-model-gateway[{kind}]'"
        raise OSError(f"channel {channel.name}: auth {{kind: {kind}}} needs a package that is not installed: {command}")
    if isinstance(auth, GoogleAuth) and auth.file is not None:
        try:
            msgspec.json.decode(Path(auth.file).read_bytes(), type=_GoogleFile)
        except ValueError:  # also msgspec's errors, whose text may contain a part of the file
            raise OSError(f"channel {channel.name}: auth.file {auth.file}: {GOOGLE_FILE}") from None
        except OSError as error:
            raise OSError(f"channel {channel.name}: auth.file {auth.file}: {error.strerror}") from None


def check_authorities(environment: Mapping[str, str]) -> None:
    """Check that the certificate authorities that the environment names can be used. OpenSSL ignores a file that it
    cannot read, so that each connection would fail. Raise OSError for an unusable file.
    """
    if file := environment.get(AUTHORITY_FILE):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
        except OSError as error:  # ssl.SSLError is one
            raise OSError(f"{AUTHORITY_FILE} {file}: {error.strerror or error}") from None
    folders = environment.get(AUTHORITY_FOLDERS, "")
    if folders and not any(map(os.path.isdir, folders.split(os.pathsep))):
        raise OSError(f"{AUTHORITY_FOLDERS} {folders}: no such directory")


def tls_context(channel: Channel) -> ssl.SSLContext | None:
    """Return the TLS context of the channel's `ca_file`; None if there is none. Raise OSError if it cannot be used."""
    if channel.ca_file is None:
        return None
    try:
        return ssl.create_default_context(cafile=channel.ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise OSError(f"channel {channel.name}: ca_file {channel.ca_file}: {error.strerror or error}") from None


def service_account(channel: Channel, file: str) -> "ServiceAccount":
    """Return the service account in a key file, by which the channel gets tokens. Raise OSError if it is unusable."""
    from umg_grpc.upstream.http.signing.service_account import read_service_account  # here: slow to import

    try:
        return read_service_account(file)
    except OSError as error:
        raise OSError(f"channel {channel.name}: auth.file {file}: {error.strerror or error}") from None
