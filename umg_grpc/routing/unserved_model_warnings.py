"""Warnings to operators about models in the config whose channel supports none of their known operations."""

from collections.abc import Collection, Iterator

from umg_grpc.base.printable_text import printable
from umg_grpc.config import Channel, ChannelModel, Config
from umg_grpc.config.channel_section import OPERATION_PROTOCOLS
from umg_grpc.config.typed_sections_from_yaml import any_of
from umg_grpc.operations import OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.routing.channel_target import has_operation, is_own, known_operations_of


def unserved_models(config: Config) -> Iterator[str]:
    """Yield a sentence for each exact model id in the config whose channel has no protocol for any known operation of
    the model. A model whose operations the config states is not checked.
    """
    for number, channel in enumerate(config.channels):
        for position, model in enumerate(channel.models):
            info = config.models.get(model.id)
            if "*" in model.id or is_own(channel) or (info is not None and info.described.operations):
                continue
            known = known_operations_of(channel, model)
            if known is not None and not any(has_operation(channel, operation) for operation in known):
                yield printable(f"channels[{number}].models[{position}]: {_problem(channel, model, known)}")


def _problem(channel: Channel, model: ChannelModel, known: Collection[ModelOperation]) -> str:
    verbs = {
        row.verb: OPERATION_PROTOCOLS[value]
        for value, row in OPERATIONS_BY_VALUE.items()
        if value in known and row.verb
    }
    if not verbs:
        return f"`{model.upstream}` is known for operations that the gateway does not serve; remove it"
    able = ", ".join(channel.protocols)
    needed = any_of([f"`{name}`" for names in verbs.values() for name in names])
    return (
        f"`{model.upstream}` is known to {' and '.join(verbs)}, which the protocols of channel {channel.name} ({able}) "
        f"cannot: add {needed}, or state the `operations` of the model"
    )
