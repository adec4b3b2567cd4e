// Calls of the contract in the formats that most programs speak; null for a call that the format cannot express.

/** @typedef {import("./contract.js").Message} Message */
/** @typedef {import("./contract.js").Part} Part */

const ROLES = /** @type {Record<string, string>} */ ({ ROLE_USER: "user", ROLE_ASSISTANT: "assistant", ROLE_SYSTEM: "system" });
/** Field of the contract -> its name in the chat format. */
const CHAT_NAMES = /** @type {Record<string, string>} */ ({
  model: "model", temperature: "temperature", topP: "top_p", maxOutputTokens: "max_completion_tokens", stopSequences: "stop", seed: "seed",
  presencePenalty: "presence_penalty", frequencyPenalty: "frequency_penalty",
});
const CHAT_OTHERS = ["messages", "instructions", "tools", "reasoning"];

/**
 * Return a request as the body of `POST /v1/chat/completions`.
 * @param {Record<string, any>} request
 * @returns {Record<string, any> | null}
 */
export function chatBody(request) {
  if (Object.keys(request).some((name) => !(name in CHAT_NAMES) && !CHAT_OTHERS.includes(name))) return null;
  const { effort, ...reasoning } = request["reasoning"] ?? {};
  const system = (request["instructions"] ?? []).map((/** @type {Part} */ part) => ({ role: "system", content: part.text?.text ?? "" }));
  const messages = (request["messages"] ?? []).map(chatMessages);
  if (messages.includes(null) || Object.keys(reasoning).length) return null;
  const named = Object.entries(CHAT_NAMES).flatMap(([name, other]) => (request[name] === undefined ? [] : [[other, request[name]]]));
  return {
    ...Object.fromEntries(named),
    messages: [...system, ...messages.flat()],
    ...(effort ? { reasoning_effort: effort } : {}),
    ...(request["tools"] ? { tools: request["tools"].map(chatTool) } : {}),
    stream: true,
  };
}

/** @param {{function: {name: string, description?: string, parametersJson: string}}} tool */
function chatTool({ function: { name, description, parametersJson } }) {
  return { type: "function", function: { name, ...(description ? { description } : {}), parameters: JSON.parse(parametersJson) } };
}

/**
 * @param {Message} message
 * @returns {object[] | null}
 */
function chatMessages({ role, parts = [] }) {
  if (role === "ROLE_TOOL") {
    return parts.map(({ toolResult }) => ({ role: "tool", tool_call_id: toolResult?.callId ?? "", content: toolResult?.parts?.[0]?.text?.text ?? "" }));
  }
  const calls = parts.flatMap(({ toolCall }) => (toolCall ? [{ id: toolCall.callId ?? "", type: "function", function: { name: toolCall.name ?? "", arguments: toolCall.argumentsJson ?? "{}" } }] : []));
  const content = parts.filter((part) => !part.reasoning && !part.toolCall).map(chatContent);
  if (content.includes(null)) return null;
  const [first] = content;
  const isText = content.length === 1 && first?.type === "text";
  return [{ role: ROLES[role] ?? "user", content: isText ? first.text : content.length ? content : null, ...(calls.length ? { tool_calls: calls } : {}) }];
}

/**
 * @param {Part} part
 * @returns {{type: string, text?: string, image_url?: {url: string}} | null}
 */
function chatContent({ text, media }) {
  if (text) return { type: "text", text: text.text ?? "" };
  if (media?.kind !== "MEDIA_KIND_IMAGE" || !media.data) return null;
  return { type: "image_url", image_url: { url: `data:${media.mimeType || "image/png"};base64,${media.data}` } };
}

/**
 * Return a request as the body of `POST /v1/embeddings`.
 * @param {{model: string, inputs?: {text: string}[], dimensions?: number, taskType?: string}} request
 */
export function embeddingsBody({ model, inputs = [], dimensions, taskType }) {
  if (taskType) return null;
  return { model, input: inputs.map(({ text }) => text), ...(dimensions ? { dimensions } : {}) };
}

/**
 * Return a request as the body of `POST /v1/rerank`.
 * @param {{model: string, query?: string, documents?: {text: string}[]}} request
 */
export function rerankBody({ model, query = "", documents = [] }) {
  return { model, query, documents: documents.map(({ text }) => text) };
}
