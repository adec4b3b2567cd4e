"""The versions of the programs, by package: the one place that has them."""

NPM = {
    "@anthropic-ai/claude-code": "2.1.330",
    "@openai/codex": "0.169.0",
    "@google/gemini-cli": "0.61.0",
    "opencode-ai": "1.18.33",
    "@qwen-code/qwen-code": "0.24.4",
}
PYPI = {"aider-chat": "0.86.2"}
