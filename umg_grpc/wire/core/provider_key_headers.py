"""HTTP headers that carry a provider's key."""

DEFAULT_KEY_HEADER = "authorization"
"""Header for the key (as a Bearer token) in protocols that do not define a header of their own."""
MESSAGES_KEY_HEADER = "x-api-key"
NATIVE_KEY_HEADER = "x-goog-api-key"
AZURE_KEY_HEADER = "api-key"
"""Header in which clients of Azure OpenAI send a caller's key (openai 3.57.0, lib/azure.py)."""
