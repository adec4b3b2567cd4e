import re

import pytest

from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.vendor_addresses import LOCAL_HOSTS, vendor_of

REMOTE = [row for row in PROVIDER_PRESETS.values() if not any(host in row.base_url for host in LOCAL_HOSTS)]


@pytest.mark.parametrize("provider", REMOTE, ids=lambda provider: provider.name)
def test_the_address_of_a_preset_has_its_vendor(provider: object) -> None:
    row = next(each for each in REMOTE if each is provider)
    filled = row.base_url.replace("<region>", "eu-west-1")
    filled = re.sub("<[^>]*>", "acme", filled)
    assert vendor_of(filled) == (row.vendor or row.name)


@pytest.mark.parametrize(
    ("address", "vendor"),
    [
        ("https://api.deepseek.com/anthropic", "deepseek"),
        ("https://API.openai.com", "openai"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("https://open.bigmodel.cn/api/anthropic", "zai"),
        ("https://api.minimax.io/anthropic", "minimax"),
        ("https://api.minimax.io/v2", "minimax-video"),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "dashscope"),
        ("https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google", "vertex"),
        ("https://acme.services.ai.azure.com/anthropic/v1", "azure"),
        ("https://bedrock-mantle.us-east-1.api.aws/anthropic", "bedrock-anthropic"),
        ("https://adb-1.2.azuredatabricks.net/serving-endpoints", "databricks"),
        ("http://localhost:8000/v1", ""),
        ("http://127.0.0.1:11434/v1", ""),
        ("https://api.openai.com.example.org/v1", ""),
        ("https://relay.example.org/api.openai.com/v1", ""),
        ("", ""),
    ],
)
def test_an_address_has_its_vendor_or_none(address: str, vendor: str) -> None:
    assert vendor_of(address) == vendor
