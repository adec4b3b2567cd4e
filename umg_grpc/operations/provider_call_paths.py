"""URL paths of providers' calls, to recognise common mistakes in a configured `base_url`."""

import re
from urllib.parse import urlsplit

from umg_grpc.operations.provider_protocols_by_name import protocol_named, provider_protocols

_VERSION = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]*)?")
_NATIVE = re.compile(r"/models/[^/]+:[A-Za-z]+$")


def right_base_url(base_url: str, call: str) -> str | None:
    """Return the `base_url` that the operator probably meant, if the provider did not find a call's path. None without
    a common mistake: a repeated version, the beginning of the call's path, no version. `call`: path below the base URL,
    for example `/chat/completions`, with or without a query.
    """
    parts, path = urlsplit(base_url), call.partition("?")[0]
    steps = parts.path.strip("/").split("/") if parts.path.strip("/") else []
    versions = [step for step in steps if _VERSION.fullmatch(step)]
    begun = path.strip("/").split("/")
    has_version_twice = len(versions) > 1 and steps[-1] == versions[-1] == versions[-2]
    if has_version_twice or (steps and len(begun) > 1 and steps[-1] == begun[0]):
        right = steps[:-1]
    elif not versions and (_NATIVE.search(path) or _lacks_version(path)):
        right = [*steps, "v1beta" if _NATIVE.search(path) else "v1"]
    else:
        return None
    return f"{parts.scheme}://{parts.netloc}{''.join(f'/{step}' for step in right)}"


def call_path(protocol: str, url: str) -> str | None:
    """Return the call path at the end of a configured URL (`/chat/completions`), which a `base_url` must not contain.
    None if the URL has none, or only one path segment, which may belong to a proxy.
    """
    found = protocol_named(protocol)
    match = found.call_path.search(url) if found is not None and found.call_path is not None else None
    if match is None or (match[0].count("/") == 1 and urlsplit(url).path == match[0]):
        return None
    return match[0]


def _lacks_version(path: str) -> bool:
    if _VERSION.fullmatch(path.strip("/").partition("/")[0]):
        return False
    patterns = (row.call_path for row in provider_protocols().values())
    return any(pattern.search(path) for pattern in patterns if pattern is not None)
