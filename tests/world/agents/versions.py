"""Versions of the programs, by package: the only place that lists them."""

NPM = {
    "@anthropic-ai/claude-code": "2.1.332",
    "@openai/codex": "0.171.0",
    "@google/gemini-cli": "0.61.0",
    "opencode-ai": "1.18.33",
    "@qwen-code/qwen-code": "0.24.4",
    "@continuedev/cli": "1.5.47",
}
PYPI = {"aider-chat": "0.86.2"}
LIBRARIES = {"llm": "0.32.1", "llama-index-llms-openai-like": "0.8.1"}
"""Python packages of the programs without scenarios."""
OPEN_WEBUI = "0.12.4"
"""Version of this package of PyPI, whose dependencies have no lock: only `make agents` installs it."""
MANIFEST = {"name": "umg-agents", "private": True, "dependencies": NPM}  # their package.json
