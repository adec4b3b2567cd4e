// Embeddings by `sdk`: openai, google, or Vercel's `ai` with its provider (ai-openai, ai-openai-compatible, ai-google).
//
// job: {id, model, texts, alone, dimensions, task, title, key, tokens, encoding}; what it leaves open is null
// out: {vectors: [[number]], used: tokens or null}
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { GoogleGenAI } from "@google/genai";
import { embed, embedMany } from "ai";
import OpenAI from "openai";

import { answered } from "./jobs.mjs";

// Without what is open, which an SDK would send as null.
const defined = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

async function openai({ root, key }, { model, texts, tokens, alone, dimensions, encoding }) {
  const sdk = new OpenAI({ baseURL: `${root}/v1`, apiKey: key, maxRetries: 0 });
  const input = tokens ?? (alone ? texts[0] : texts);
  const answer = await sdk.embeddings.create({ model, input, ...defined({ dimensions, encoding_format: encoding }) });
  return { vectors: answer.data.map((each) => each.embedding), used: answer.usage.prompt_tokens };
}

async function google({ root, key, version }, { model, texts, alone, dimensions, task, title }) {
  const sdk = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: root, ...defined({ apiVersion: version ?? null }) } });
  const config = defined({ outputDimensionality: dimensions, taskType: task, title });
  const answer = await sdk.models.embedContent({ model, contents: alone ? texts[0] : texts, config });
  return { vectors: answer.embeddings.map((each) => each.values), used: answer.usageMetadata?.promptTokenCount ?? null };
}

// Vercel's providers, each with the names that its own options have.
const PROVIDERS = {
  "ai-openai": ({ root, key }, { model, dimensions }) => ({
    model: createOpenAI({ baseURL: `${root}/v1`, apiKey: key }).embedding(model),
    providerOptions: { openai: defined({ dimensions }) },
  }),
  "ai-openai-compatible": ({ root, key }, { model, dimensions }) => ({
    model: createOpenAICompatible({ name: "compatible", baseURL: `${root}/v1`, apiKey: key }).embeddingModel(model),
    providerOptions: { compatible: defined({ dimensions }) },
  }),
  "ai-google": ({ root, key, version }, { model, dimensions, task }) => ({
    model: createGoogleGenerativeAI({ baseURL: `${root}/${version}`, apiKey: key }).embedding(model),
    providerOptions: { google: defined({ outputDimensionality: dimensions, taskType: task }) },
  }),
};

async function ai(connection, job) {
  const options = { ...PROVIDERS[connection.sdk](connection, job), maxRetries: 0 };
  const answer = job.alone ? await embed({ ...options, value: job.texts[0] }) : await embedMany({ ...options, values: job.texts });
  return { vectors: answer.embeddings ?? [answer.embedding], used: answer.usage.tokens ?? null };
}

const SDKS = { openai, google };

answered((request, job) => (SDKS[request.sdk] ?? ai)({ ...request, key: job.key ?? request.key }, job));
