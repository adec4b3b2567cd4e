"""Addresses of channels in the config: `base_url`, `base_urls`, and `account`, which fills in a preset's URL."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from umg_grpc.config.typed_sections_from_yaml import any_of
from umg_grpc.config.value_parsers import url
from umg_grpc.config.yaml_document import Path, YamlDocument
from umg_grpc.knowledge.cloud_call_shapes import call_shape
from umg_grpc.knowledge.provider_presets import Provider
from umg_grpc.knowledge.vendor_addresses import vendor_of
from umg_grpc.operations.provider_call_paths import call_path

REPEATED_SLASHES = re.compile(r"(?<!:)/{2,}")
"""Repeated slashes in the path of a URL, which providers do not serve."""
PART_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
"""Value of a `<>` part of a preset's URL: one label of a host or one segment of a path."""


def preset_address(
    document: YamlDocument, path: Path, preset: Provider, base_url: str | None, account: Mapping[str, str]
) -> str:
    """Return the base URL of the channel at `path` with a preset: `base_url`, or the preset's URL with `account` filled
    in. Report an address that is missing or stated twice.
    """
    if account and base_url is not None:
        document.problem((*path, "account"), "expected either `account` or `base_url`")
    elif base_url is not None and (path_of_api := _missing_path(preset, base_url)):
        document.problem((*path, "base_url"), f"expected {path_of_api}, below which the provider has its calls")
    elif account:
        base_url = _account_address(document, path, preset, account)
    elif base_url is None and not preset.is_complete:
        parts = ", ".join(f"{name}: ..." for name in preset.account_parts)
        problem = f"expected the URL of your account: {preset.base_url}, or `account: {{{parts}}}`"
        document.problem((*path, "base_url"), problem)
    return base_url or preset.base_url


def _missing_path(preset: Provider, base_url: str) -> str:
    """Return the full URL of the API for a URL at a preset's host that lacks the API's path; "" for any other."""
    try:
        written = urlsplit(base_url)
    except ValueError:  # reported as no URL
        return ""
    host, begun = written.hostname or "", written.path.rstrip("/")
    hosts = (urlsplit(each).hostname or "" for each in (preset.base_url, *preset.regions.values()))
    is_of_preset = vendor_of(base_url) == preset.name or any(_pattern(each).fullmatch(host) for each in hosts)
    needed = urlsplit(preset.base_url).path
    if preset.is_complete or not is_of_preset or not needed.startswith(f"{begun}/"):
        return ""
    return f"{written.scheme}://{written.netloc}{needed}"


def _pattern(host: str) -> re.Pattern[str]:
    return re.compile(re.sub("<[^>]+>", "[^.]+", re.escape(host)))


def _account_address(document: YamlDocument, path: Path, preset: Provider, account: Mapping[str, str]) -> str | None:
    """Return a preset's base URL with the `account` of the channel at `path` filled in; None after a problem."""
    names, reported = preset.account_parts, False
    if not names:
        document.problem((*path, "account"), "expected no account: the URL of this provider is the same for all")
        return None
    for name, value in account.items():
        if name not in names:
            document.problem((*path, "account", name), f"expected {any_of(names)}")
            reported = True
        elif not PART_VALUE.fullmatch(value):
            document.problem((*path, "account", name), "expected letters, digits, `.`, `_` or `-`")
            reported = True
        elif "." in value and f"<{name}>" in (urlsplit(preset.base_url).hostname or ""):
            document.problem((*path, "account", name), f"expected one label of the host, {value.partition('.')[0]}")
            reported = True
    if missing := [f"`{name}`" for name in names if name not in account]:
        document.problem((*path, "account"), f"expected {' and '.join(missing)}, too")
    parts = {name: value for name, value in account.items() if name != "region"}
    return None if reported or missing else preset.address(account.get("region", ""), **parts)


def _is_of_vendor(base_url: str) -> bool:
    try:
        return vendor_of(base_url) != ""
    except ValueError:  # reported as no URL
        return False


def check_parameters(
    document: YamlDocument, path: Path, base_url: str, protocols: tuple[str, ...], query: Mapping[str, str]
) -> None:
    """Report the query parameters that every call of a vendor's address needs and that `query` lacks."""
    shapes = (call_shape(protocol, base_url) for protocol in protocols)
    needed = {name: value for shape in shapes if shape is not None for name, value in shape.query.items()}
    for name, value in needed.items():
        if name not in query and _is_of_vendor(base_url):
            document.problem(
                path, f"expected `{name}` with a version, for example {value}: calls of {base_url} need it"
            )


def base_url_of(document: YamlDocument, path: Path, written: str | None, protocols: tuple[str, ...]) -> str:
    """Return the base URL without trailing slashes; "" for None. Report an unusable URL, and one that already ends in
    the path of a call, since the path would be appended again.
    """
    if written is None:
        return ""
    if "?" in written:
        document.problem(path, "expected a URL without a query; its parameters go into `query: {NAME: VALUE}`")
    base = REPEATED_SLASHES.sub("/", url(document, path, written))  # of a variable that ends in a slash
    for protocol in protocols:
        if (added := call_path(protocol, base)) is not None:
            document.problem(path, f"expected {base.removesuffix(added)}: `{protocol}` adds {added} at each call")
    return base


def base_urls_of(
    document: YamlDocument, path: Path, written: Mapping[str, str], protocols: tuple[str, ...]
) -> dict[str, str]:
    """Return the checked base URL of each protocol. Report URLs of protocols that the channel does not have."""
    for protocol in written.keys() - set(protocols):
        document.problem((*path, protocol), f"expected one of the channel's protocols: {', '.join(protocols)}")
    return {name: base_url_of(document, (*path, name), url, (name,)) for name, url in written.items()}
