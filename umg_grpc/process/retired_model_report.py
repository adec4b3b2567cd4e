"""Report of the models of a config that their vendors have shut down."""

from umg_grpc.base.printable_text import printable
from umg_grpc.config import Config
from umg_grpc.knowledge.retired_models import retirement
from umg_grpc.knowledge.vendors import vendor_of


def retired_models(config: Config) -> list[str]:
    """Return a sentence for each model of a channel that exists no more at the vendor's address which it calls."""
    return [
        printable(f"`{model.upstream}` of channel {channel.name} {row.text}")
        for channel in config.channels
        if (vendor := vendor_of(channel.base_url))
        for model in channel.models
        if (row := retirement(model.upstream, vendor)) is not None
    ]
