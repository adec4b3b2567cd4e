"""Cache points of Converse requests (`cachePoint`), made from the caller's cache marks or from marks that are added."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from umg_grpc.knowledge.bedrock_models import BedrockModel
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.prompt_cache_marks import lasts_an_hour
from umg_grpc.wire.dropped_fields_report import Report

MAX_CACHE_POINTS = 4
UNMARKED_BLOCK = "reasoningContent"  # type of block after which the provider rejects a cache point


@dataclass(slots=True)
class Block:
    """Content block, text of the system prompt, or tool, with the cache mark at its end, if any."""

    fields: JsonObject
    mark: pb.CacheControl | None = None

    def has(self, member: str) -> bool:
        """Return whether the block has the member that names its type."""
        return member in self.fields

    def take_mark(self, marked: pb.Part | pb.Tool, report: Report) -> None:
        """Take over the mark of a part or tool, if any; report it if no cache point may be there."""
        if not marked.HasField("cache_control"):
            return
        if self.has(UNMARKED_BLOCK):
            report.drop("cache_control")
        else:
            self.mark = marked.cache_control


BlockGroups = Mapping[Literal["tools", "system", "messages"], list[Block]]
"""Part of the prompt -> its blocks, in the order of the prompt."""


def fit_marks(groups: BlockGroups, model: BedrockModel, report: Report) -> None:
    """Remove marks that the model does not accept, in place: in parts of the prompt without cache points, and all but
    the last `MAX_CACHE_POINTS`. Shorten a lifetime that the model does not have, or that follows a shorter one.
    """
    for place, blocks in groups.items():
        if place not in model.cache_places:
            _remove(blocks, report)
    marked = list(_marked(chain.from_iterable(groups.values())))
    _remove(marked[:-MAX_CACHE_POINTS], report)
    is_short = not model.caches_an_hour
    for block in _marked(marked):
        if block.mark is not None and is_short and lasts_an_hour(block.mark):
            block.mark = pb.CacheControl()
            report.drop("cache_control", "5m")
        is_short = is_short or (block.mark is not None and not lasts_an_hour(block.mark))


def mark_ends(groups: BlockGroups, model: BedrockModel) -> None:
    """Mark the last tool, the end of the system prompt and the end of the conversation, for a caller without marks."""
    for place, blocks in groups.items():
        if place in model.cache_places and (
            last := next((b for b in reversed(blocks) if not b.has(UNMARKED_BLOCK)), None)
        ):
            last.mark = pb.CacheControl()


def has_marks(groups: BlockGroups) -> bool:
    """Return whether one of the blocks has a mark."""
    return any(True for _ in _marked(chain.from_iterable(groups.values())))


def written(blocks: Iterable[Block]) -> list[JsonObject]:
    """Return blocks as JSON, with a cache point after each block that has a mark."""
    return [entry for block in blocks for entry in _written(block)]


def _written(block: Block) -> Iterator[JsonObject]:
    yield block.fields
    if block.mark is not None:
        point: JsonObject = {"type": "default"}
        if block.mark.ttl:
            point["ttl"] = "1h" if lasts_an_hour(block.mark) else "5m"
        yield {"cachePoint": point}


def _marked(blocks: Iterable[Block]) -> Iterator[Block]:
    return (block for block in blocks if block.mark is not None)


def _remove(blocks: Iterable[Block], report: Report) -> None:
    for block in blocks:
        if block.mark is not None:
            block.mark = None
            report.drop("cache_control")
