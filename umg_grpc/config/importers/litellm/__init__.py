"""Conversion of LiteLLM configs: deployments become models of channels, settings become sections of the config."""
