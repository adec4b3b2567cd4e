"""Model lists of providers, as stored in files, for processes that read no lists from providers. They provide the
router with the discovered models, and the reasons why lists could not be read.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from umg_grpc.config import Channel, Config
from umg_grpc.operations.provider_protocols_by_name import model_list
from umg_grpc.routing import Router
from umg_grpc.routing.discovered_models import with_discovered
from umg_grpc.service.provider_failure_advice import advice
from umg_grpc.store.provider_model_list_files import ModelListFiles
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_model_lists import ProviderModelList


def stored_router(config: Config, data: Path) -> Router:
    """Return the router of a config, with the models that the gateway with this data directory has discovered."""
    return Router(with_stored_lists(config, data), time.time)


def with_stored_lists(config: Config, data: Path) -> Config:
    """Return the config with the models that the gateway with this data directory has discovered."""
    files = ModelListFiles(data)
    channels = [channel for channel in config.channels if channel.reads_list]
    stored = {channel.name: files.read(channel.name, channel.base_url) for channel in channels}
    found = {name: models for name, models in stored.items() if models is not None}
    return with_discovered(config, found)


def list_source(channel: Channel, listing: ProviderModelList) -> str:
    """Return a text that identifies an account's list in one format. It contains API keys: store only a hash."""
    shape = listing.decode.__name__  # a relay has the lists of several vendors at one address
    sent = (channel.auth, sorted(channel.headers.items()), sorted(channel.query.items()))  # may name an organization
    return "\0".join((channel.base_url, listing.path, shape, repr(sent), *channel.api_keys))


def list_states(config: Config, files: ModelListFiles) -> Iterator[pb.ProviderModelList]:
    """Yield the state of each channel's model list: when it was read, and why the last read failed."""
    for channel in config.channels:
        listing = model_list(channel.listing_protocols) if channel.reads_list else None
        if listing is None:
            continue
        state = pb.ProviderModelList(channel=channel.name)
        if (read := files.written_at(channel.name, channel.base_url)) is not None:
            state.read_time.FromDatetime(datetime.fromtimestamp(read, UTC))
        if (found := files.failure(list_source(channel, listing))) is not None:
            moment, failure = found
            state.failure_time.FromDatetime(datetime.fromtimestamp(moment, UTC))
            state.kind = failure.facts.kind.value if failure.facts is not None else ""
            state.problem = advice(failure.facts) if failure.facts is not None else failure.reason
        yield state
