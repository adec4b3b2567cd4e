"""Report of the models in a config that their vendors have shut down, or will shut down soon."""

from datetime import date, timedelta

from umg_grpc.base.printable_text import printable
from umg_grpc.config import Config
from umg_grpc.knowledge.model_retirement_dates import WARNING_DAYS, retirement_of
from umg_grpc.knowledge.vendor_addresses import vendor_of


def retired_models(config: Config, today: date) -> list[str]:
    """Return a sentence for each model of a channel that its vendor has ended, or will end within `WARNING_DAYS`."""
    last = today + timedelta(days=WARNING_DAYS)
    return [
        printable(f"`{model.upstream}` of channel {channel.name} {row.text()}")
        for channel in config.channels
        for model in channel.models
        if (row := retirement_of(model.upstream, vendor_of(channel.base_url))) is not None and row.day <= last
    ]
