// The present call as code. A call that a common format can express is written in it, any other one as the contract has it.
// Texts of models and people are quoted: see quoting.js.

import { javascriptString, pythonString, shellJson, shellUrl, shellWord } from "../quoting.js";
import { chatBody, embeddingsBody, rerankBody } from "./common-formats.js";
import { EMBED, GENERATE, RERANK, STREAM_GENERATE } from "./contract.js";

/** @typedef {import("./contract.js").Call} Call */
/** @typedef {{title: string, code: string, isGrpc?: boolean}} Snippet */
/** @typedef {{path: string, body: Record<string, any>, sdk: string}} HttpCall `sdk`: the method of the openai SDKs, if it has one */

const LONG = 200; // characters of content in base64 from which code has a name in its place
const KEY = '"authorization: Bearer $UMG_API_KEY"';

/**
 * Return the code of a call in each language.
 * @param {string} address of the gateway
 * @param {Call} call
 * @returns {Snippet[]}
 */
export function snippets(address, call) {
  const shown = /** @type {Call} */ ({ method: call.method, message: named(call.message) });
  const http = httpCall(shown);
  const model = String(http.body["model"] ?? "");
  return [
    { title: "curl", code: curl(address, http) },
    { title: "Python", code: python(address, http) },
    { title: "TypeScript", code: typescript(address, http) },
    { title: "gRPC", code: grpcurl(address, shown), isGrpc: true },
    // `=`: an id that begins with a dash would be an option
    ...(call.method === STREAM_GENERATE ? [{ title: "Claude Code", code: `ANTHROPIC_BASE_URL=${shellUrl(address)} ANTHROPIC_AUTH_TOKEN="$UMG_API_KEY" claude --model=${shellWord(model)}` }] : []),
  ];
}

/**
 * Return the call as a path and a body of JSON.
 * @param {Call} call
 * @returns {HttpCall}
 */
function httpCall({ method, message }) {
  const chat = method === STREAM_GENERATE ? chatBody(/** @type {any} */ (message["request"])) : null;
  if (chat) return { path: "/v1/chat/completions", body: chat, sdk: "chat.completions" };
  const vectors = method === EMBED ? embeddingsBody(/** @type {any} */ (message)) : null;
  if (vectors) return { path: "/v1/embeddings", body: vectors, sdk: "embeddings" };
  const ranking = method === RERANK ? rerankBody(/** @type {any} */ (message)) : null;
  if (ranking) return { path: "/v1/rerank", body: ranking, sdk: "" };
  const [name, body] = method === STREAM_GENERATE ? [GENERATE, message["request"]] : [method, message];
  return { path: `/umg.v1.${name}`, body: /** @type {Record<string, any>} */ (body), sdk: "" };
}

/**
 * @param {string} address
 * @param {HttpCall} call
 */
function curl(address, { path, body }) {
  const parts = [`curl ${shellUrl(address + path)}`, `-H ${KEY}`, "-H 'content-type: application/json'", `--data-raw ${shellJson(JSON.stringify(body, null, 1))}`];
  return parts.join(" \\\n  ");
}

/**
 * @param {string} address
 * @param {Call} call
 */
function grpcurl(address, { method, message }) {
  const plain = address.startsWith("https:") ? "" : "-plaintext ";
  return `grpcurl ${plain}-H ${KEY} \\\n  -d ${shellJson(JSON.stringify(message, null, 1))} \\\n  "$UMG_ADDRESS" umg.v1.${method}`;
}

/**
 * @param {string} address
 * @param {HttpCall} call
 */
function python(address, { path, body, sdk }) {
  const key = 'os.environ["UMG_API_KEY"]';
  if (!sdk) {
    return `import os

import httpx

response = httpx.post(
    ${pythonString(address + path)},
    headers={"authorization": f"Bearer {os.environ['UMG_API_KEY']}"},
    json=${literal(body, PYTHON, 1)},
    timeout=600,
)
response.raise_for_status()
print(response.json())`;
  }
  const create = `client.${sdk}.create(**${literal(body, PYTHON, 0)})`;
  const printed = body["stream"] ? `for chunk in ${create}:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")` : `print(${create})`;
  return `import os

from openai import OpenAI

client = OpenAI(base_url=${pythonString(`${address}/v1`)}, api_key=${key})
${printed}`;
}

/**
 * @param {string} address
 * @param {HttpCall} call
 */
function typescript(address, { path, body, sdk }) {
  if (!sdk) {
    return `const response = await fetch(${javascriptString(address + path)}, {
  method: "POST",
  headers: { authorization: \`Bearer \${process.env.UMG_API_KEY}\`, "content-type": "application/json" },
  body: JSON.stringify(${literal(body, JAVASCRIPT, 1)}),
});
console.log(await response.json());`;
  }
  const create = `await client.${sdk}.create(${literal(body, JAVASCRIPT, 0)})`;
  const printed = body["stream"] ? `for await (const chunk of ${create}) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
}` : `console.log(${create});`;
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${javascriptString(`${address}/v1`)}, apiKey: process.env.UMG_API_KEY });
${printed}`;
}

/** @typedef {{string: (text: string) => string, words: Record<string, string>, indent: string}} Language */
/** @type {Language} */
const PYTHON = { string: pythonString, words: { true: "True", false: "False", null: "None" }, indent: "    " };
/** @type {Language} */
const JAVASCRIPT = { string: javascriptString, words: { true: "true", false: "false", null: "null" }, indent: "  " };

/**
 * Return a value of JSON as a literal of a language.
 * @param {any} value
 * @param {Language} language
 * @param {number} depth
 * @returns {string}
 */
function literal(value, language, depth) {
  if (typeof value === "string") return language.string(value);
  if (typeof value !== "object" || value === null) return language.words[String(value)] ?? String(value);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const members = Array.isArray(value)
    ? value.map((each) => literal(each, language, depth + 1))
    : Object.entries(value).map(([name, each]) => `${language.string(name)}: ${literal(each, language, depth + 1)}`);
  if (!members.length) return `${open}${close}`;
  const line = `${open}${members.join(", ")}${close}`;
  if (line.length < 60 && !line.includes("\n")) return line;
  const inner = language.indent.repeat(depth + 1);
  return `${open}\n${members.map((member) => `${inner}${member},\n`).join("")}${language.indent.repeat(depth)}${close}`;
}

/**
 * Return a message with a name in the place of the content of each file.
 * @param {any} value
 * @returns {any}
 */
function named(value) {
  if (Array.isArray(value)) return value.map(named);
  if (typeof value !== "object" || value === null) return value;
  const name = `BASE64_OF_${String(value.filename || value.fileName || "FILE").replace(/[^\w.]+/g, "_")}`;
  return Object.fromEntries(Object.entries(value).map(([member, each]) => [
    member, member === "data" && typeof each === "string" && each.length > LONG ? name : named(each),
  ]));
}
