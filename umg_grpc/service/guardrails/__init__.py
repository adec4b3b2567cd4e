"""Guards: checks of requests before they are sent to a provider, and of responses before the caller gets them. The
driver runs them, and the adapters decide: patterns, a webhook, and a service over gRPC.
"""
