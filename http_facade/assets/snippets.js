// Lines of code that call the gateway, with its address, a key and a model.

import { javascriptString, pythonString, shellJson, shellUrl, shellWord } from "./quoting.js";

/** Return the snippets: [title, text]. */
export function lines(address, key, model) {
  const message = `{"model": ${JSON.stringify(model)}, "messages": [{"role": "user", "content": "Hello"}]}`;
  return [
    ["curl", curl("POST", `${address}/v1/chat/completions`, key, message)],
    ["Python, openai", `from openai import OpenAI

client = OpenAI(base_url=${pythonString(`${address}/v1`)}, api_key=${pythonString(key)})
stream = client.chat.completions.create(
    model=${pythonString(model)}, messages=[{"role": "user", "content": "Hello"}], stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="")`],
    ["Python, anthropic", `from anthropic import Anthropic

client = Anthropic(base_url=${pythonString(address)}, api_key=${pythonString(key)})
message = client.messages.create(
    model=${pythonString(model)}, max_tokens=200, messages=[{"role": "user", "content": "Hello"}]
)
print(message.content[0].text)`],
    ["JavaScript, openai", `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${javascriptString(`${address}/v1`)}, apiKey: ${javascriptString(key)} });
const response = await client.responses.create({ model: ${javascriptString(model)}, input: "Hello" });
console.log(response.output_text);`],
    // `=`: an id that begins with a dash would be an option
    ["Claude Code", `ANTHROPIC_BASE_URL=${shellUrl(address)} ANTHROPIC_AUTH_TOKEN=${shellWord(key)} claude --model=${shellWord(model)}`],
  ];
}

/** Return the command of curl for a call; `body`: a JSON text, null for none; `form`: fields of a form, undefined for none. */
export function curl(method, url, key, body, form) {
  const request = method === "POST" && (body !== null || form) ? "" : `-X ${method} `;
  const parts = [`curl ${request}${shellUrl(url)}`, `-H ${shellWord(`authorization: Bearer ${key}`)}`];
  // not `-d`, which reads a file where the text begins with `@`
  if (body !== null) parts.push("-H 'content-type: application/json'", `--data-raw ${shellJson(body)}`);
  for (const [name, value] of Object.entries(form ?? {})) parts.push(`-F ${shellWord(`${name}=${value}`)}`);
  return parts.join(" \\\n  ");
}
