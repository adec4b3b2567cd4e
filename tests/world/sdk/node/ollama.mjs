// Calls of Ollama's client.
//
// job: {id, method, options, key}; the method is one of the client, a key that is null stands for that of the run
// out: the answer; of a stream {parts: [each]}
import { Ollama } from "ollama";

import { answered } from "./jobs.mjs";

async function call({ root, key }, { method, options, key: another }) {
  const client = new Ollama({ host: root, headers: { Authorization: `Bearer ${another ?? key}` } });
  const images = (message) => ({ ...message, ...(message.images && { images: message.images.map((each) => Buffer.from(each, "base64")) }) });
  const sent = options.messages ? { ...options, messages: options.messages.map(images) } : options;
  try {
    const answer = await client[method](sent);
    if (!options.stream) return answer;
    const parts = [];
    for await (const part of answer) parts.push(part);
    return { parts };
  } catch (error) {
    error.status = error.status_code ?? null;
    throw error;
  }
}

answered(call);
