"""Conversion of configs of LiteLLM's proxy: their deployments become models of channels, their settings sections."""
