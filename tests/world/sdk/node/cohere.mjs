// Chats and embeddings of Cohere by `sdk`: cohere-ai, or Vercel's `ai` with its provider of Cohere (ai).
//
// job: {id, question, tool, streamed, thinks, texts, endpoint}; without `texts` and `endpoint` a chat
// out: {text, reasoning, calls: [[name, arguments]], finish, second, errors}, {vectors: {type: [...]}} or {listed: [...]}
import { createCohere } from "@ai-sdk/cohere";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { CohereClientV2 } from "cohere-ai";

import { answered } from "./jobs.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

async function cohere({ root, key, model }, job) {
  const sdk = new CohereClientV2({ token: key, environment: root });
  const options = { maxRetries: 0 };
  if (job.texts) {
    const types = ["float", "binary", "ubinary", "base64"];
    const body = { model: job.model, texts: job.texts, inputType: "search_document", embeddingTypes: types };
    const { embeddings } = await sdk.embed(body, options);
    return { vectors: Object.fromEntries(types.map((type) => [type, embeddings[type]])) };
  }
  if (job.endpoint) {
    const { models } = await sdk.models.list({ endpoint: job.endpoint }, options);
    const first = await sdk.models.get(models[0].name, options);
    return { listed: models.map((each) => [each.name, each.endpoints]), first: first.name };
  }
  const messages = [{ role: "user", content: job.question }];
  const declared = job.tool && { type: "function", function: { ...job.tool, description: "d" } };
  const body = { model, messages, ...(declared && { tools: [declared] }), ...(job.thinks && { thinking: { type: "enabled" } }) };
  if (job.streamed) return collected(await sdk.chatStream(body, options));
  const answer = await sdk.chat(body, options);
  const shown = shownOf(answer.message, answer.finishReason);
  if (!answer.message.toolCalls) return shown;
  const [call] = answer.message.toolCalls;
  const result = { role: "tool", toolCallId: call.id, content: job.result };
  const second = await sdk.chat({ ...body, messages: [...messages, answer.message, result] }, options);
  return { ...shown, second: shownOf(second.message, second.finishReason).text };
}

function shownOf(message, finish) {
  const joined = (kind) => (message.content ?? []).map((part) => part[kind] ?? "").join("");
  const calls = (message.toolCalls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
  return { text: joined("text"), reasoning: joined("thinking"), calls, finish };
}

async function collected(stream) {
  const shown = { text: "", reasoning: "", calls: [], finish: "" };
  for await (const event of stream) {
    const message = event.delta?.message;
    if (event.type === "content-delta") {
      shown.text += message.content.text ?? "";
      shown.reasoning += message.content.thinking ?? "";
    } else if (event.type === "tool-call-start") shown.calls.push([message.toolCalls.function.name, ""]);
    else if (event.type === "tool-call-delta") shown.calls.at(-1)[1] += message.toolCalls.function.arguments;
    else if (event.type === "message-end") shown.finish = event.delta.finishReason;
  }
  return { ...shown, calls: shown.calls.map(([name, text]) => [name, JSON.parse(text)]) };
}

async function ai({ root, key, model }, job) {
  const found = [];
  const execute = (input) => {
    found.push([job.tool.name, input]);
    return job.result;
  };
  const declared = job.tool && tool({ description: "d", inputSchema: jsonSchema(job.tool.parameters), execute });
  const options = {
    model: createCohere({ baseURL: `${root}/v2`, apiKey: key })(model),
    prompt: job.question,
    maxRetries: 0,
    ...(declared && { tools: { [job.tool.name]: declared }, stopWhen: stepCountIs(2) }),
    ...(job.thinks && { providerOptions: { cohere: { thinking: { type: "enabled" } } } }),
  };
  const errors = [];
  const onError = ({ error }) => void errors.push(String(error.message));
  const answer = job.streamed ? streamText({ ...options, onError }) : await generateText(options);
  const [text, reasoning, finish] = await Promise.all([answer.text, answer.reasoningText, answer.finishReason]);
  return { text, reasoning: reasoning ?? "", calls: found, finish, errors };
}

answered((request, job) => (request.sdk === "ai" ? ai : cohere)({ ...request, key: job.key ?? request.key, model: job.model ?? request.model }, job));
