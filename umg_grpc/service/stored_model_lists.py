"""Router with the models that a gateway has discovered, for processes that read no lists themselves."""

import time
from pathlib import Path

from umg_grpc.config import Config
from umg_grpc.routing import Router
from umg_grpc.routing.discovered_models import with_discovered
from umg_grpc.store.model_list_files import ModelListFiles


def stored_router(config: Config, data: Path) -> Router:
    """Return the router of a config, with the models that the gateway with the data directory `data` has discovered at
    providers.
    """
    files = ModelListFiles(data)
    channels = [channel for channel in config.channels if channel.reads_list]
    lists = {channel.name: files.read(channel.name, channel.base_url) for channel in channels}
    return Router(with_discovered(config, lists), time.time)
