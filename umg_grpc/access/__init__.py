"""Access control: API keys, authentication of each call, permissions, rate limits."""
