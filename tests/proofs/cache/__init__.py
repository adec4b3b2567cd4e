"""Proof that agents through the gateway pay no more for their prompts than they pay their provider directly."""
