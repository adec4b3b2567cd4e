"""Access control: API keys and their permissions, authentication of each call, rate limits and budgets."""
