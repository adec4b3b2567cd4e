"""Security checks at the start of a gateway that other machines can reach, or whose providers are on other machines."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from umg_grpc.base.errors import UmgError
from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.config import Address, Channel, CloudAuth, CommandAuth, Config, ServiceAccountAuth
from umg_grpc.process.serve_options import GRPC_FACE, Options
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.v1 import pb

logger = LazyLogger(__name__)

UNENCRYPTED_KEY = "the key of a channel is sent unencrypted: use https in its base_url"
SECRET_HEADER = re.compile(r"authorization|cookie|key|token|secret|password", re.IGNORECASE)
"""Part of the names of headers and parameters that carry secrets."""


def check_exposure(options: Options, config: Config, environment: Mapping[str, str]) -> None:
    """Log warnings for settings that are unsafe with other machines: keys sent without TLS, and missing settings for
    remote callers. Raise UmgError(INVALID_FIELD) for a short bootstrap key on an address other than loopback.
    """
    from umg_grpc.access.bootstrap_key import BOOTSTRAP_KEY_VARIABLE  # here: `umg check` needs no database

    for warning in replica_warnings(config) if GRPC_FACE in options.faces else ():
        logger.warning(f"the database is for several replicas, but {warning}")
    exposed = ", ".join(map(str, options.exposed))
    if exposed:
        if GRPC_FACE in options.faces:
            _check_key(options, environment.get(BOOTSTRAP_KEY_VARIABLE), exposed)
        if config.public_url is None:
            logger.warning(
                "links to result files have the address of this machine: set `public_url`", addresses=exposed
            )
        if config.tls is None:
            logger.warning(
                "callers send their keys unencrypted: set `tls`, put a proxy with TLS in front, or bind 127.0.0.1",
                addresses=exposed,
            )
    for channel in config.channels:
        if (host := unencrypted_host(channel)) is not None:
            headers = [name for name in channel.headers if SECRET_HEADER.search(name)]
            logger.warning(UNENCRYPTED_KEY, channel=channel.name, host=host, headers=headers or None)


def unencrypted_host(channel: Channel) -> str | None:
    """Return the host on another machine to which a channel would send a secret without TLS; None if there is none."""
    urls = map(urlsplit, channel.addresses)
    hosts = (url.hostname for url in urls if url.scheme == "http" and url.hostname is not None)
    if (host := next((host for host in hosts if not Address(host, 0).is_loopback), None)) is None:
        return None
    has_tokens = isinstance(channel.auth, CommandAuth | ServiceAccountAuth | CloudAuth)
    secrets = any(SECRET_HEADER.search(name) for name in (*channel.headers, *channel.query))
    return host if channel.api_keys or has_tokens or secrets else None


def replica_warnings(config: Config) -> list[str]:
    """Return a warning for each setting that does not work with several replicas on one database."""
    if config.database == SQLITE_KIND:
        return []
    warnings = []
    if config.secret is None:
        warnings.append(
            "`secret` is absent: each replica makes its own, and refuses the links to files that the others have signed"
        )
    if config.blobs.enabled and config.blobs.url is None:
        warnings.append(
            "`blobs.url` is absent: result files are in a folder, which replicas on other hosts do not read"
        )
    return warnings


def _check_key(options: Options, variable: str | None, exposed: str) -> None:
    from umg_grpc.access.bootstrap_key import BOOTSTRAP_KEY_VARIABLE, MIN_EXPOSED_CHARACTERS, configured_secret

    secret = configured_secret(options.data, variable)
    if secret is not None and len(secret) < MIN_EXPOSED_CHARACTERS:
        message = (
            f"the first key ({BOOTSTRAP_KEY_VARIABLE}, or bootstrap.key in --data) has fewer than "
            f"{MIN_EXPOSED_CHARACTERS} characters, which is too short where other machines can connect ({exposed}): "
            "set a longer one, or bind 127.0.0.1"
        )
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=BOOTSTRAP_KEY_VARIABLE)
