"""Presets of providers: `provider: NAME` in a channel of the config fills in the provider's address, protocols and
models. The rows are in `data/presets.json`. Restrictions of the models are in `umg_grpc.knowledge.provider_quirks`,
found by the host of `base_url`.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct, field

from umg_grpc.base.wildcard_patterns import wildcard_match
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.operations_by_model_id import operations_named
from umg_grpc.v1 import pb

SERVICE_ACCOUNT_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
"""Environment variable with the path of a service account's key, as the vendor's own clients read it."""


Kind = Literal["maker", "cloud", "host", "vectors", "media", "local"]
"""Kind of a provider: maker of models, cloud, host of models of many makers, embeddings and rankings, images and
videos, server of the operator.
"""


_PARTS = re.compile("([^<]+)(?:<([a-z]+)>)?")
"""Text of a URL up to a `<>` part, and the name of that part; "" if no part follows."""


class PresetModel(Struct, frozen=True, forbid_unknown_fields=True):
    """Model, or pattern of models, of a preset, like an entry of `models` in a channel of the config."""

    id: str
    upstream: str = ""
    """Provider's id; its `*` stands for the match of the `*` in `id`."""
    family: str | None = None
    operations: tuple[str, ...] = ()
    """Names of its operations (`operations_by_model_id.operations_named`); empty if its id shows them."""

    def matches(self, model: str) -> bool:
        return wildcard_match(self.upstream, model) is not None


class Provider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Preset of one provider: address, protocols, authentication, environment variables of its key, and models."""

    name: str
    title: str
    kind: Kind
    vendor: str = ""
    """Preset of the same vendor, with the same rules and prices, if this one is another platform; "" if it is not."""
    protocols: tuple[str, ...]
    """Wire formats, the preferred one first."""
    base_url: str
    """URL in front of the paths of the protocols. A part in `<>` differs for each account."""
    base_urls: dict[str, str] = field(default_factory=dict)
    """Protocol -> URL in place of `base_url`, with the same parts in `<>`, for protocols at another address."""
    regions: dict[str, str] = field(default_factory=dict)
    """Region -> URL in place of `base_url`, for regions whose host is formed in another way."""
    keys: tuple[str, ...] = ()
    """Environment variables of the key, which the vendor's own clients read; the first one that is set is used. Two
    names with a colon are the variables of an access key and of its secret key.
    """
    needs_key: bool = True
    found_by_key: bool = True
    """Whether a set variable shows that the provider is used, and not another platform of the vendor, for example."""
    auth: dict[str, str] | None = None
    """Way of sending the key, as the `auth` of a channel in the config; None is that of the protocol."""
    uses_service_account: bool = False
    """Whether calls are authenticated by a service account, whose file `SERVICE_ACCOUNT_FILE` names."""
    cloud: Literal["", "aws", "google", "azure"] = ""
    """Kind of `auth` with credentials of the cloud's own library, in place of a key; "" if the provider has none."""
    listed: tuple[str | PresetModel, ...] = field(name="models")
    """Models as the file lists them: an id alone is that of the provider, too."""
    lists_models: bool = True
    """Whether the provider lists its models at the address of the first protocol that has a model list."""
    max_inputs: int | None = None
    """Most texts of one embedding request, if lower than the limit of the protocol."""
    restrictions_known: bool = True
    """Whether the tables have the restrictions of its API; if false, those of unknown hosts apply, too."""
    unpriced: Literal["free"] | None = None
    """Price of models without a price: `free` for servers that the operator runs; None for vendors."""
    retired: str = ""
    """Day from which the provider serves no more; "" for one that does."""
    instead: str = ""
    source: str
    """Documentation of the provider's API, from which this preset is."""
    as_of: str

    @property
    def variables(self) -> tuple[str, ...]:
        """Environment variables that may contain the credentials, in the form of `keys`."""
        return (SERVICE_ACCOUNT_FILE,) if self.uses_service_account else self.keys

    @property
    def variables_text(self) -> str:
        """Names of the environment variables for operators, for example `A or B` and `ACCESS_KEY and SECRET_KEY`."""
        return " or ".join(names.replace(":", " and ") for names in self.variables)

    def key_in(self, variable: Callable[[str], str | None]) -> tuple[str, str] | None:
        """Return (entry of `keys`, API key) of the first entry whose variables are set, or None. `variable`: getenv."""
        for names in self.keys:
            values = [value for name in names.split(":") if (value := variable(name))]
            if len(values) == len(names.split(":")):
                return names, ":".join(values)
        return None

    def base_urls_beside(self, base_url: str) -> dict[str, str]:
        """Return `base_urls` for an account with this base URL. Empty if the URL is not the provider's, since another
        server in front of the provider may serve `base_url` only.
        """
        pattern, known = "", set[str]()
        for text, name in _PARTS.findall(self.base_url):
            pattern += re.escape(text) + (f"(?P={name})" if name in known else f"(?P<{name}>[^/]+)" if name else "")
            known.add(name)
        if (match := re.fullmatch(pattern, base_url)) is None:
            return {}
        return {
            protocol: "".join(text + (match[name] if name else "") for text, name in _PARTS.findall(url))
            for protocol, url in self.base_urls.items()
        }

    def address(self, region: str, **parts: str) -> str:
        """Return `base_url` with the region and the other `<>` parts (by name) filled in."""
        url = self.regions.get(region, self.base_url).replace("<region>", region)
        for name, value in parts.items():
            url = url.replace(f"<{name}>", value)
        return url

    @property
    def account_parts(self) -> tuple[str, ...]:
        """Names of the `<>` parts of `base_url`, each once."""
        return tuple(dict.fromkeys(name for _, name in _PARTS.findall(self.base_url) if name))

    @property
    def is_complete(self) -> bool:
        """Whether `base_url` is the same for all accounts; otherwise the operator must fill in the parts in `<>`."""
        return "<" not in self.base_url

    @property
    def models(self) -> tuple[PresetModel, ...]:
        written = (PresetModel(model) if isinstance(model, str) else model for model in self.listed)
        return tuple(
            PresetModel(model.id, model.upstream or model.id, model.family, model.operations) for model in written
        )

    def has_model(self, model: str) -> bool:
        return any(entry.matches(model) for entry in self.models)

    def operations_of(self, model: str) -> "frozenset[pb.ModelOperation.ValueType] | None":
        """Return the operations of the longest entry that matches a provider's id and states some; None if there is
        none.
        """
        stated = [entry for entry in self.models if entry.operations and entry.matches(model)]
        found = max(stated, key=lambda entry: len(entry.upstream), default=None)
        return operations_named(found.operations) if found is not None else None


PROVIDER_PRESETS: Mapping[str, Provider] = MappingProxyType({row.name: row for row in read_rows("presets", Provider)})
