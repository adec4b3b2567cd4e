"""Notification about an alert as a message of Slack's incoming webhooks: a text for clients without blocks, and blocks
within the limits of Slack's documentation ("Block Kit", "Formatting text for app surfaces", read 2026-11-30).
"""

import re

from umg_grpc.service.alerts.alert_messages import times_of, title_of
from umg_grpc.v1 import pb

HEADER_CHARACTERS = 150
SECTION_CHARACTERS = 3000
FIELD_CHARACTERS = 2000
MAX_FIELDS = 10
"""Limits of a header, of the text of a section, and of the fields of a section."""
MARKUP_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))
"""Characters with a meaning in Slack's markup, which would else make links and mentions of names."""

PARTIAL_ESCAPE = re.compile(r"&[a-z]{0,3}$")


def slack_message(sent: pb.AlertNotification) -> dict[str, object]:
    """Return the body of the request."""
    title, summary = title_of(sent), _escaped(sent.alert.summary)
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(title, HEADER_CHARACTERS)}},
        {"type": "section", "text": _markup(summary, SECTION_CHARACTERS)},
    ]
    details = [f"*{_escaped(name)}*\n{_escaped(value)}" for name, value in sorted(sent.alert.details.items()) if value]
    if details:
        fields = [_markup(each, FIELD_CHARACTERS) for each in details[:MAX_FIELDS]]
        blocks.append({"type": "section", "fields": fields})
    if sent.alert.HasField("open_time"):
        blocks.append({"type": "context", "elements": [_markup(times_of(sent), FIELD_CHARACTERS)]})
    return {"text": _cut(f"{title}: {summary}", SECTION_CHARACTERS), "blocks": blocks}


def _markup(text: str, limit: int) -> dict[str, object]:
    return {"type": "mrkdwn", "text": _cut(text, limit)}


def _escaped(text: str) -> str:
    for character, escape in MARKUP_ESCAPES:
        text = text.replace(character, escape)
    return text


def _cut(text: str, limit: int) -> str:
    """Return a text of bounded length, in which no escape is cut."""
    return text if len(text) <= limit else f"{PARTIAL_ESCAPE.sub('', text[: limit - 1])}…"
