"""Explicit caches of the native format: `cachedContents` of one account, with their lifetime and the price of storage."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.proofs.cache.prompts import prompt_of
from tests.support.providers.server import Json, RefusedError

DEFAULT_SECONDS = 3600.0
MISSING = "CachedContent not found (or permission denied)"
OF_CACHES = frozenset({"model", "ttl", "displayName", "cachedContent", "cached_content"})
EXCLUSIVE = (
    "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\n"
    "Proposed fix: move those values to CachedContent from GenerateContent request."
)


@dataclass(frozen=True)
class StoredContent:
    name: str
    account: str
    model: str
    body: Json
    tokens: int
    end: float
    seconds: float


@dataclass
class StoredContents:
    """All explicit caches of the vendor. Each belongs to one account and one model."""

    clock: Callable[[], float]
    created: list[StoredContent] = field(default_factory=list)
    """All that were created: each is paid for its whole lifetime."""
    refused: int = 0
    """Number of requests to create one that were refused."""
    missed: int = 0
    """Number of calls that named an unknown one."""
    _stored: dict[str, StoredContent] = field(default_factory=dict)

    def create(self, account: str, body: Json, minimum: int) -> Json:
        """Store the beginning of prompts. Return the resource. Raise RefusedError for one that is too small."""
        tokens = prompt_of("native", body).tokens
        if tokens < minimum:
            message = f"Cached content is too small. total_token_count={tokens}, min_total_token_count={minimum}"
            raise RefusedError(message)
        name = f"cachedContents/{len(self.created) + 1:012}"
        model = body["model"].removeprefix("models/")
        seconds = _seconds(body.get("ttl"))
        self._stored[name] = StoredContent(name, account, model, body, tokens, self.clock() + seconds, seconds)
        self.created.append(self._stored[name])
        return self._resource(self._stored[name])

    def lose(self) -> None:
        self._stored.clear()

    def get(self, account: str, name: str) -> StoredContent:
        """Return a cache. Raise RefusedError(403) for one that ended, or belongs to another account."""
        found = self._stored.get(name)
        self.missed += found is None
        if found is None or found.account != account or found.end <= self.clock():
            raise RefusedError(MISSING, status=403)
        return found

    def delete(self, account: str, name: str) -> Json:
        del self._stored[self.get(account, name).name]
        return {}

    def described(self, account: str, name: str) -> Json:
        return self._resource(self.get(account, name))

    def whole_body(self, account: str, model: str, body: Json) -> tuple[Json, int]:
        """Return a request with the content of the cache that it names, and the tokens of that; 0 without one. Raise
        RefusedError for members that only the cache may have, and for a cache of another model.
        """
        name = body.get("cachedContent") or body.get("cached_content")
        if not name:
            return body, 0
        if any(body.get(each) for each in ("systemInstruction", "tools", "toolConfig")):
            raise RefusedError(EXCLUSIVE)
        stored = self.get(account, name)
        if stored.model != model:
            message = f"Model used by GenerateContent request (models/{model}) and CachedContent (models/{stored.model}) has to be the same."
            raise RefusedError(message)
        contents = [*stored.body.get("contents", ()), *body.get("contents", ())]
        whole = {**body, **stored.body, "contents": contents}
        return {name: value for name, value in whole.items() if name not in OF_CACHES}, stored.tokens

    def _resource(self, stored: StoredContent) -> Json:
        end = datetime.fromtimestamp(stored.end, UTC).isoformat().replace("+00:00", "Z")
        usage = {"totalTokenCount": stored.tokens}
        return {"name": stored.name, "model": f"models/{stored.model}", "expireTime": end, "usageMetadata": usage}


def _seconds(ttl: str | None) -> float:
    return float(ttl.removesuffix("s")) if ttl else DEFAULT_SECONDS
