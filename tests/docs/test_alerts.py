"""Page on alerts: its configs are valid, and its tables have the rules and defaults of the code."""

import re

import msgspec
import pytest
import yaml

from tests.docs.tables import DOCS, quoted, rows
from umg_grpc.base.time_units import UNIT_SECONDS
from umg_grpc.config import parse
from umg_grpc.config.alert_section import RECEIVER_KINDS
from umg_grpc.config.alert_settings import ALL_RULES, AlertRuleEntry, AlertRules, AlertSettings
from umg_grpc.service.alerts.alert_messages import RULE_VALUES
from umg_grpc.service.alerts.alert_sender import RETRY_PAUSES

PAGE = (DOCS / "alerts.md").read_text(encoding="utf-8")
CONFIGS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
CHANNEL = "channels: [{name: main, protocols: [sandbox], models: [famO-5]}]\n"
ENVIRONMENT = {
    "ALERT_SECRET": "whsec_" + "A" * 32,
    "SLACK_URL": "https://hooks.slack.com/services/T/B/x",
    "SMTP_PASSWORD": "secret",
}


@pytest.mark.parametrize("config", CONFIGS)
def test_each_config_is_valid(config: str) -> None:
    assert parse(CHANNEL + config, "page.yaml", ENVIRONMENT).alerts.receivers


def test_the_page_has_every_kind_of_receiver() -> None:
    assert re.findall(r"^\*\*`(\w+)`\*\*", PAGE, re.MULTILINE) == list(RECEIVER_KINDS)


def test_the_first_table_has_every_rule() -> None:
    documented = [quoted(cells[0])[0] for cells in rows(PAGE, "Rules") if len(cells) == 4 and quoted(cells[0])]
    assert documented == list(AlertRules.__struct_fields__) == list(RULE_VALUES)


def test_the_second_table_has_every_key_with_its_default() -> None:
    written = {
        quoted(cells[0])[0]: quoted(cells[1])[0]
        for cells in rows(PAGE, "Rules")
        if len(cells) == 3 and quoted(cells[0])
    }
    expected: dict[str, object] = {"interval": AlertSettings.interval, "remind_every": AlertSettings.remind_every}
    for rule in AlertRules.__struct_fields__:
        entry = getattr(ALL_RULES, rule)
        own = {*entry.__struct_fields__} - {*AlertRuleEntry.__struct_fields__}
        expected |= {f"rules.{rule}.{key}": getattr(entry, key) for key in own}
    read = {key: _seconds(text) if key == "remind_every" else yaml.safe_load(text) for key, text in written.items()}
    assert read == msgspec.json.decode(msgspec.json.encode(expected))


def _seconds(text: str) -> int:
    return int(text[:-1]) * UNIT_SECONDS[text[-1]]


def test_the_page_has_the_pauses_between_attempts() -> None:
    units = {"s": 1, "min": 60, "h": 3600}
    [line] = re.findall(r"\*\*Repeated\*\* after (.*?); then", " ".join(PAGE.split()))
    assert tuple(int(number) * units[unit] for number, unit in re.findall(r"(\d+) (s|min|h)\b", line)) == RETRY_PAUSES
