// Images by `sdk`: openai, google, or Vercel's `ai` with its provider (ai-openai, ai-openai-compatible, ai-google).
//
// job: {id, model, prompt, n, size, images: [base64], streamed, key}; what it leaves open is null
// out: {images: [base64], used: tokens or null, kinds: [event type]}
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { GoogleGenAI } from "@google/genai";
import { generateImage, generateText } from "ai";
import OpenAI, { toFile } from "openai";

import { answered } from "./jobs.mjs";

const defined = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
const bytes = (text) => Buffer.from(text, "base64");

async function openai({ root, key }, { model, prompt, n, size, images, streamed }) {
  const sdk = new OpenAI({ baseURL: `${root}/v1`, apiKey: key, maxRetries: 0 });
  const fields = { model, prompt, ...defined({ n, size }) };
  if (streamed) {
    const found = { images: [], used: null, kinds: [] };
    for await (const event of await sdk.images.generate({ ...fields, stream: true, partial_images: 1 })) {
      found.kinds.push(event.type);
      found.images.push(event.b64_json);
      found.used = event.usage?.total_tokens ?? null;
    }
    return found;
  }
  const files = images && (await Promise.all(images.map((each, i) => toFile(bytes(each), `${i}.png`, { type: "image/png" }))));
  const answer = files ? await sdk.images.edit({ ...fields, image: files }) : await sdk.images.generate(fields);
  return { images: answer.data.map((each) => each.b64_json ?? each.url), used: answer.usage?.total_tokens ?? null, kinds: [] };
}

async function google({ root, key }, { model, prompt, images }) {
  const sdk = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: root } });
  const inputs = (images ?? []).map((data) => ({ inlineData: { mimeType: "image/png", data } }));
  const config = { responseModalities: ["IMAGE"] };
  const answer = await sdk.models.generateContent({ model, contents: [{ text: prompt }, ...inputs], config });
  const parts = answer.candidates[0].content.parts;
  return { images: parts.filter((part) => part.inlineData).map((part) => part.inlineData.data), used: null, kinds: [] };
}

// Vercel's providers.
const PROVIDERS = {
  "ai-openai": ({ root, key }, model) => createOpenAI({ baseURL: `${root}/v1`, apiKey: key }).image(model),
  "ai-openai-compatible": ({ root, key }, model) =>
    createOpenAICompatible({ name: "compatible", baseURL: `${root}/v1`, apiKey: key }).imageModel(model),
};

async function ai(connection, { model, prompt, n, size, images }) {
  const text = images ? { images: images.map(bytes), text: prompt } : prompt;
  const chosen = PROVIDERS[connection.sdk](connection, model);
  const answer = await generateImage({ model: chosen, prompt: text, maxRetries: 0, ...defined({ n, size }) });
  return { images: answer.images.map((each) => each.base64), used: answer.usage?.totalTokens ?? null, kinds: [] };
}

async function aiGoogle({ root, key }, { model, prompt }) {
  const chosen = createGoogleGenerativeAI({ baseURL: `${root}/v1beta`, apiKey: key })(model);
  const providerOptions = { google: { responseModalities: ["IMAGE"] } };
  const answer = await generateText({ model: chosen, prompt, providerOptions, maxRetries: 0 });
  return { images: answer.files.map((each) => each.base64), used: null, kinds: [] };
}

const SDKS = { openai, google, "ai-google": aiGoogle };

answered((request, job) => (SDKS[request.sdk] ?? ai)({ ...request, key: job.key ?? request.key }, job));
