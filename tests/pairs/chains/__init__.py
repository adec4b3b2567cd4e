"""Chains of servers: relays, other gateways and OpenAI-compatible servers with their own habits behind the gateway."""
