// Vercel's `ai`: `provider` openai (responses), openai-chat, openai-compatible (chat), anthropic or google.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Output, generateText, jsonSchema, streamText, tool } from "ai";

import { City, empty, leave, main } from "./jobs.mjs";

// The model, and the provider's own search where `ai` has a tool for it.
function connected({ provider, root, key, model }) {
  const [v1, v1beta] = [`${root}/v1`, `${root}/v1beta`];
  switch (provider) {
    case "openai": {
      const made = createOpenAI({ baseURL: v1, apiKey: key });
      return { model: made(model), search: { web_search: made.tools.webSearch({}) } };
    }
    case "openai-chat":
      return { model: createOpenAI({ baseURL: v1, apiKey: key }).chat(model) };
    case "openai-compatible": {
      const options = { includeUsage: true, supportsStructuredOutputs: true };
      return { model: createOpenAICompatible({ name: "compatible", baseURL: v1, apiKey: key, ...options })(model) };
    }
    case "anthropic": {
      const made = createAnthropic({ baseURL: v1, apiKey: key });
      return { model: made(model), search: { web_search: made.tools.webSearch_20250305({}) } };
    }
    case "google": {
      const made = createGoogleGenerativeAI({ baseURL: v1beta, apiKey: key });
      return { model: made(model), search: { google_search: made.tools.googleSearch({}) } };
    }
  }
  throw new Error(`no provider ${provider}`);
}

// Options with which each provider returns its thoughts.
const THINKING = {
  openai: { openai: { reasoningEffort: "high", reasoningSummary: "auto", store: false, include: ["reasoning.encrypted_content"], forceReasoning: true } },
  "openai-chat": { openai: { reasoningEffort: "high", forceReasoning: true } },
  "openai-compatible": { compatible: { reasoningEffort: "high" } },
  anthropic: { anthropic: { thinking: { type: "enabled", budgetTokens: 1025 } } },
  google: { google: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } } },
};

main((request) => {
  const { provider, tools } = request;
  const { model, search } = connected(request);

  function requestOf(question) {
    const content = [{ type: "text", text: question.text }];
    if (question.image) content.push({ type: "file", data: question.image, mediaType: "image/png" });
    if (question.file) content.push({ type: "file", data: question.file, mediaType: "application/pdf", filename: "a.pdf" });
    const messages = question.history.map(([role, text]) => ({ role, content: text }));
    messages.push({ role: "user", content });
    if (question.before) {
      const result = ({ toolCallId, toolName }) => ({
        type: "tool-result",
        toolCallId,
        toolName,
        output: { type: "text", value: question.gave[toolName] },
      });
      messages.push(...question.before.messages, { role: "tool", content: question.before.calls.map(result) });
    }
    const options = { model, messages, maxOutputTokens: question.limit, maxRetries: 0 };
    if (question.system) options.instructions = question.system;
    if (question.tools.length) {
      const described = (name) => tool({ description: name, inputSchema: jsonSchema(tools[name]) });
      options.tools = Object.fromEntries(question.tools.map((name) => [name, described(name)]));
      options.toolChoice = ["auto", "required"].includes(question.choice) ? question.choice : { type: "tool", toolName: question.choice };
    }
    if (question.search) options.tools = { ...options.tools, ...search };
    if (question.reasoning) options.providerOptions = THINKING[provider];
    if (question.schema) options.output = Output.object({ schema: City });
    if (question.stop) options.stopSequences = [question.stop];
    if (question.bad) options.topP = 5; // a temperature is brought into range by some of them
    return options;
  }

  async function shown(result, schema) {
    const usage = await result.usage;
    const calls = await result.toolCalls;
    const response = await result.response;
    return {
      ...empty,
      text: await result.text,
      reasoning: (await result.reasoningText) ?? "",
      calls: calls.filter((call) => !call.providerExecuted).map((call) => [call.toolName, call.input]),
      citations: (await result.sources).map((source) => [source.url, source.title, ""]),
      finish: await result.finishReason,
      usage: [
        usage.inputTokens,
        usage.inputTokenDetails?.cacheReadTokens ?? usage.cachedInputTokens ?? 0,
        usage.outputTokens,
        usage.outputTokenDetails?.reasoningTokens ?? usage.reasoningTokens ?? 0,
      ],
      parsed: schema ? await result.output : null,
      turn: { messages: (await result.responseMessages) ?? response.messages, calls },
    };
  }

  return {
    async ask(question) {
      return shown(await generateText(requestOf(question)), question.schema);
    },
    async stream(question) {
      let failed = null;
      const result = streamText({ ...requestOf(question), onError: ({ error }) => (failed ??= error) });
      await result.consumeStream({ onError: (error) => (failed ??= error) });
      if (failed) throw failed;
      return shown(result, question.schema);
    },
    async abort(question) {
      const controller = new AbortController();
      const result = streamText({ ...requestOf(question), abortSignal: controller.signal, onError: () => {} });
      let aborted = false;
      const stream = (async function* () {
        for await (const part of result.fullStream ?? result.stream) {
          if (part.type === "abort") aborted = true;
          if (part.type === "text-delta") yield part;
        }
      })();
      const left = await leave(stream, (part) => part.text, () => controller.abort());
      return { seen: left.seen, left: left.left || (aborted ? "abort" : "") };
    },
  };
});
