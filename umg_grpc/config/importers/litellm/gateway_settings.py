"""Settings of LiteLLM's proxy and router that can be converted: fallbacks, retries, the breaker, Redis, aliases."""

from collections.abc import Mapping
from urllib.parse import quote

from umg_grpc.config.importers.config_text_builder import ImportedConfig, compact, mapping
from umg_grpc.config.importers.litellm.fallback_lists import add_fallbacks
from umg_grpc.config.importers.litellm.unconverted_litellm_settings import UnconvertedSettings
from umg_grpc.config.importers.tracked_source_config import SourceMapping

SETTINGS_SECTIONS = ("litellm_settings", "router_settings", "general_settings")


def call_timeout(settings: SourceMapping, router: SourceMapping) -> tuple[float | None, SourceMapping, str]:
    """Return LiteLLM's timeout in seconds for deployments that state none, and the section and key that contain it."""
    if (seconds := router.peek_number("timeout")) is not None:
        return seconds, router, "timeout"
    return settings.peek_number("request_timeout"), settings, "request_timeout"


def add_settings(made: ImportedConfig, sections: Mapping[str, SourceMapping], unconverted: UnconvertedSettings) -> None:
    """Add the settings that can be converted to the config, and list all others. `sections`: by LiteLLM's name."""
    settings, router = sections["litellm_settings"], sections["router_settings"]
    _add_retries(made, router, settings)
    _add_breaker(made, router, settings)
    _add_redis(made, sections, unconverted)
    _add_aliases(made, router)
    add_fallbacks(made, {name: sections[name] for name in ("router_settings", "litellm_settings")})
    for name in SETTINGS_SECTIONS:
        unconverted.add(name, sections[name].rest())


def _add_retries(made: ImportedConfig, router: SourceMapping, settings: SourceMapping) -> None:
    if (retries := _first_number("num_retries", router, settings)) is not None:
        made.sections["retries"] = {"repeats": int(retries)}


def _add_breaker(made: ImportedConfig, router: SourceMapping, settings: SourceMapping) -> None:
    breaker: dict[str, object] = {}
    if (fails := _first_number("allowed_fails", router, settings)) is not None:
        breaker["failures"] = max(int(fails), 1)
    if rest := _first_number("cooldown_time", router, settings):
        breaker["rest"] = compact(rest)
    if breaker:
        made.sections["breaker"] = breaker


def _first_number(key: str, *places: SourceMapping) -> float | None:
    return next((found for place in places if (found := place.number(key)) is not None), None)


def _add_redis(made: ImportedConfig, sections: Mapping[str, SourceMapping], unconverted: UnconvertedSettings) -> None:
    """Add the Redis server of the first section that names one: by a URL, or by host, port and password."""
    settings, router, general = (sections[name] for name in SETTINGS_SECTIONS)
    cache = settings.child("cache_params") if _is_redis(settings.peek("cache_params")) else SourceMapping({})
    coordination = general.child("coordination_redis")
    for place, prefix in ((router, "redis_"), (coordination, ""), (cache, "")):
        if "redis" not in made.sections and (url := _redis_url(place, prefix)):
            made.sections["redis"] = url
    unconverted.add("general_settings.coordination_redis", coordination.rest())
    unconverted.add("litellm_settings.cache_params", cache.rest())


def _is_redis(cache: object) -> bool:
    written = mapping(cache)
    return bool(written) and ("host" in written or "url" in written) and written.get("type", "redis") == "redis"


def _redis_url(place: SourceMapping, prefix: str) -> str:
    """Take the URL of a Redis server from the keys that begin with `prefix`; "" if there is none."""
    if url := place.text(f"{prefix}url"):
        return url
    host = place.text(f"{prefix}host")
    if not host:
        return ""
    port, password = place.text(f"{prefix}port") or "6379", place.text(f"{prefix}password")
    user = place.text(f"{prefix}username")
    secret = f"{_quoted(user)}:{_quoted(password)}@" if password else ""
    database = place.text(f"{prefix}db")
    scheme = "rediss" if place.peek(f"{prefix}ssl") is True and place.take(f"{prefix}ssl") else "redis"
    return f"{scheme}://{secret}{host}:{port}{f'/{database}' if database else ''}"


def _quoted(text: str) -> str:
    return text if text.startswith("${") else quote(text, safe="")


def _add_aliases(made: ImportedConfig, router: SourceMapping) -> None:
    aliases = mapping(router.peek("model_group_alias"))
    if aliases:
        router.take("model_group_alias")
        made.sections["aliases"] = {
            name: str(mapping(value).get("model", "") if isinstance(value, dict) else value)
            for name, value in aliases.items()
        }
        for name in (name for name, value in aliases.items() if mapping(value).get("hidden")):
            made.lose(f"router_settings.model_group_alias.{name}.hidden", "aliases are in the list of models")
