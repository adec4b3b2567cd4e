"""HTTP headers that carry a provider's key."""

DEFAULT_KEY_HEADER = "authorization"
"""Header of the protocols without one of their own, with a Bearer token."""
MESSAGES_KEY_HEADER = "x-api-key"
NATIVE_KEY_HEADER = "x-goog-api-key"
AZURE_KEY_HEADER = "api-key"
"""Header in which clients of Azure OpenAI send the key of a caller (openai 3.57.0, lib/azure.py)."""
