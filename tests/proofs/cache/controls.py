"""Cache controls of requests in each format: their refusals in the words of the vendor, and their selections."""

from tests.proofs.cache.prompt_caches import CacheRequest
from tests.proofs.cache.prompts import Prompt
from tests.proofs.cache.vendor_rules import CacheRules, Matching
from tests.support.providers.server import Json, RefusedError

LONGER_FIRST = (
    "{at}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note "
    "that blocks are processed in the following order: `tools`, `system`, `messages`."
)
TOO_MANY = "A maximum of {most} blocks with cache_control may be provided. Found {found}."
LIFETIMES = {"5m", "1h"}


def judge(wire_format: str, rules: CacheRules, body: Json, prompt: Prompt) -> None:
    """Raise RefusedError for controls that the vendor refuses. Prompts that are too short are no error."""
    if rules.matching is Matching.MARKS:
        _judge_marks(rules, body, prompt)
    elif wire_format != "native":
        _judge_breakpoints(rules, body, prompt)


def _judge_marks(rules: CacheRules, body: Json, prompt: Prompt) -> None:
    marked = [block for block in prompt.blocks if block.lifetime]
    found = len(marked) + (body.get("cache_control") is not None)
    if found > rules.max_marks:
        raise RefusedError(TOO_MANY.format(most=rules.max_marks, found=found))
    short = False
    for block in marked:
        if block.lifetime not in LIFETIMES:
            raise RefusedError(f"{block.path}.cache_control.ttl: Input should be '5m' or '1h'")
        if short and block.lifetime == "1h":
            raise RefusedError(LONGER_FIRST.format(at=block.path))
        short = short or block.lifetime == "5m"
    for tool in body.get("tools") or ():
        if tool.get("defer_loading") and tool.get("cache_control"):
            raise RefusedError(f"Tool '{tool['name']}' cannot have both defer_loading=true and cache_control set.")


def _judge_breakpoints(rules: CacheRules, body: Json, prompt: Prompt) -> None:
    options, retention = body.get("prompt_cache_options"), body.get("prompt_cache_retention")
    if rules.matching is not Matching.BREAKPOINTS:
        if options is not None:
            raise _unsupported("prompt_cache_options")
        for block in prompt.blocks:
            if block.lifetime:
                raise _unsupported(f"{block.path}.prompt_cache_breakpoint")
    elif retention is not None and (options or {}).get("ttl"):
        message = "'prompt_cache_retention' cannot be used together with 'prompt_cache_options.ttl'."
        raise RefusedError(message, "prompt_cache_retention", "invalid_value")


def _unsupported(name: str) -> RefusedError:
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    return RefusedError(message, name, "unsupported_parameter")


def selected(wire_format: str, rules: CacheRules, body: Json, account: str, model: str) -> CacheRequest:
    """Return the controls of a request beside its marks."""
    if rules.matching is Matching.MARKS:
        return CacheRequest(account, model, automatic=_top_level(body))
    if wire_format == "native":
        return CacheRequest(account, model)
    options, key = body.get("prompt_cache_options") or {}, body.get("prompt_cache_key") or ""
    if rules.matching is Matching.BREAKPOINTS:
        ttl = options.get("ttl") or "30m"
        automatic = "" if options.get("mode") == "explicit" else ttl
        return CacheRequest(account, model, key, automatic, is_long=ttl == "12h")
    return CacheRequest(account, model, key, is_long=body.get("prompt_cache_retention") == "24h")


def _top_level(body: Json) -> str:
    control = body.get("cache_control")
    return str(control.get("ttl") or "5m") if control else ""
