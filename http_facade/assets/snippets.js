// Lines of code that call the gateway, with its address, a key and a model.

/** Return the snippets: [title, text]. */
export function lines(address, key, model) {
  const message = `{"model": ${JSON.stringify(model)}, "messages": [{"role": "user", "content": "Hello"}]}`;
  const quoted = (text) => JSON.stringify(text);
  return [
    ["curl", `curl ${address}/v1/chat/completions \\
  -H 'authorization: Bearer ${key}' \\
  -H 'content-type: application/json' \\
  -d '${message}'`],
    ["Python, openai", `from openai import OpenAI

client = OpenAI(base_url=${quoted(`${address}/v1`)}, api_key=${quoted(key)})
stream = client.chat.completions.create(
    model=${quoted(model)}, messages=[{"role": "user", "content": "Hello"}], stream=True
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="")`],
    ["Python, anthropic", `from anthropic import Anthropic

client = Anthropic(base_url=${quoted(address)}, api_key=${quoted(key)})
message = client.messages.create(
    model=${quoted(model)}, max_tokens=200, messages=[{"role": "user", "content": "Hello"}]
)
print(message.content[0].text)`],
    ["JavaScript, openai", `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${quoted(`${address}/v1`)}, apiKey: ${quoted(key)} });
const answer = await client.responses.create({ model: ${quoted(model)}, input: "Hello" });
console.log(answer.output_text);`],
    ["Claude Code", `ANTHROPIC_BASE_URL=${address} ANTHROPIC_AUTH_TOKEN='${key}' claude --model '${model}'`],
  ];
}
