"""Alerts: reads and checks the config section `alerts`."""

import binascii
import re
from base64 import b64decode
from collections.abc import Collection, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from umg_grpc.config.alert_settings import (
    AlertReceiver,
    AlertRuleEntry,
    AlertRules,
    AlertSettings,
    EmailReceiver,
    SlackReceiver,
    WebhookReceiver,
)
from umg_grpc.config.file_sections import ConfigEntry
from umg_grpc.config.typed_sections_from_yaml import any_of, read_entry
from umg_grpc.config.value_parsers import PRINTABLE_TEXT, duration
from umg_grpc.config.yaml_document import Path, YamlDocument

RECEIVER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
MAIL_ADDRESS = re.compile(r"[!-~]+@[!-~]+")
HOST_NAME = re.compile(r"[^\s/:@\[\]]+|[0-9a-fA-F:]+")
WEBHOOK_SECRET_PREFIX = "whsec_"  # noqa: S105  of Standard Webhooks, not a secret
LEAST_SECRET_BYTES, MOST_SECRET_BYTES = 24, 64
"""Length of secrets (Standard Webhooks specification, "Signature scheme")."""

RECEIVER_KINDS: Mapping[str, type[AlertReceiver]] = {
    str(kind.__struct_config__.tag): kind for kind in (WebhookReceiver, SlackReceiver, EmailReceiver)
}
"""Value of the key `kind` -> the other keys of a receiver."""


class AlertsEntry(ConfigEntry, frozen=True):
    """Alerts of the gateway for its operators."""

    receivers: dict[str, object] = msgspec.field(default_factory=dict)
    rules: object = None
    interval: Annotated[float, msgspec.Meta(ge=1, le=3600)] = AlertSettings.interval
    remind_every: str | None = None


def alerts(document: YamlDocument, entry: AlertsEntry, directory: PurePath) -> AlertSettings:
    """Return the settings of the section, and report invalid ones. Relative files are relative to `directory`."""
    receivers = dict[str, AlertReceiver]()
    for name, value in entry.receivers.items():
        path: Path = ("alerts", "receivers", name)
        if not RECEIVER_NAME.fullmatch(name):
            document.problem(path, "expected lower-case letters, digits, `-` and `_`, at most 32")
        if (receiver := _receiver(document, path, value, directory)) is not None:
            receivers[name] = receiver
    remind_every = AlertSettings.remind_every
    if entry.remind_every is not None:
        remind_every = duration(document, ("alerts", "remind_every"), entry.remind_every)
    return AlertSettings(
        receivers=MappingProxyType(receivers),
        rules=_rules(document, entry.rules, entry.receivers),
        interval=entry.interval,
        remind_every=remind_every,
    )


def webhook_key(secret: str) -> bytes:
    """Return the key of a secret of Standard Webhooks. Raise ValueError for another text."""
    if not secret.startswith(WEBHOOK_SECRET_PREFIX):
        raise ValueError
    try:
        key = b64decode(secret.removeprefix(WEBHOOK_SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError from None
    if not LEAST_SECRET_BYTES <= len(key) <= MOST_SECRET_BYTES:
        raise ValueError
    return key


def _receiver(document: YamlDocument, path: Path, value: object, directory: PurePath) -> AlertReceiver | None:
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in RECEIVER_KINDS:
        document.problem(path, f"expected a mapping with `kind`, {any_of(tuple(RECEIVER_KINDS))}")
        return None
    rest = {key: each for key, each in value.items() if key != "kind"}
    receiver = read_entry(document, path, rest, RECEIVER_KINDS[kind])
    match receiver:
        case WebhookReceiver():
            _check_url(document, (*path, "url"), receiver.url)
            try:
                webhook_key(receiver.secret)
            except ValueError:
                document.problem((*path, "secret"), "expected `whsec_` and the base64 of 24 to 64 random bytes")
        case SlackReceiver():
            _check_url(document, (*path, "url"), receiver.url)
        case EmailReceiver():
            _check_mail(document, path, receiver)
            if receiver.ca_file is not None:
                return msgspec.structs.replace(receiver, ca_file=str(directory / receiver.ca_file))
        case None:
            pass
    return receiver


def _check_url(document: YamlDocument, path: Path, text: str) -> None:
    """Report an invalid URL. Unlike those of providers, it may have a query and a slash at its end."""
    try:
        parts = urlsplit(text)
        is_valid = bool(parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0)
    except ValueError:
        is_valid = False
    if not is_valid or not PRINTABLE_TEXT.fullmatch(text) or "#" in text or "@" in parts.netloc:
        document.problem(path, "expected a URL, http:// or https:// with a host, without credentials and fragment")


def _check_mail(document: YamlDocument, path: Path, receiver: EmailReceiver) -> None:
    if not HOST_NAME.fullmatch(receiver.host):
        document.problem((*path, "host"), "expected the name or address of a host; its port is in `port`")
    if not MAIL_ADDRESS.fullmatch(receiver.sender):
        document.problem((*path, "sender"), "expected an address: gateway@example.com")
    for at, address in enumerate(receiver.to):
        if not MAIL_ADDRESS.fullmatch(address):
            document.problem((*path, "to", at), "expected an address: operator@example.com")
    if (receiver.username is None) != (receiver.password is None):
        missing = "password" if receiver.password is None else "username"
        document.problem((*path, missing), "expected `username` and `password` together")
    if receiver.username is not None and receiver.security == "none":
        document.problem((*path, "security"), "expected `starttls` or `tls`: a password is not sent unencrypted")


def _rules(document: YamlDocument, written: object, receivers: Collection[str]) -> AlertRules:
    rules = AlertRules()
    if written is None:
        return rules
    if not isinstance(written, dict):
        document.problem(("alerts", "rules"), "expected a mapping of rules to their keys")
        return rules
    for name, value in written.items():
        path: Path = ("alerts", "rules", name)
        if name not in AlertRules.__struct_fields__:
            document.problem(path, f"expected a rule, {any_of(AlertRules.__struct_fields__)}")
            continue
        default: AlertRuleEntry = getattr(rules, name)
        if (rule := read_entry(document, path, value, type(default))) is None:
            continue
        for at, receiver in enumerate(rule.receivers):
            if receiver not in receivers:
                document.problem((*path, "receivers", at), "expected the name of a receiver in `alerts.receivers`")
        rules = msgspec.structs.replace(rules, **{name: rule})
    return rules
