// Reranking by `sdk`: cohere-v1, cohere-v2, or Vercel's `ai` (ai-cohere).
//
// job: {id, model, query, documents, top_n, return_documents, rank_fields, key}; what it leaves open is null
// out: {places: [index], scores: [number], documents: [as the SDK gives them], id}
import { createCohere } from "@ai-sdk/cohere";
import { rerank } from "ai";
import { CohereClient, CohereClientV2 } from "cohere-ai";

import { answered } from "./jobs.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false; // that objects are sent as text

const defined = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

async function cohere({ root, key, sdk }, { model, query, documents, top_n, return_documents, rank_fields }) {
  const Client = sdk === "cohere-v1" ? CohereClient : CohereClientV2;
  const options = defined({ topN: top_n, returnDocuments: return_documents, rankFields: rank_fields });
  const answer = await new Client({ token: key, environment: root }).rerank({ model, query, documents, ...options }, { maxRetries: 0 });
  return {
    places: answer.results.map((each) => each.index),
    scores: answer.results.map((each) => each.relevanceScore),
    documents: answer.results.map((each) => each.document ?? null),
    id: answer.id,
  };
}

async function ai({ root, key }, { model, query, documents, top_n }) {
  const options = { model: createCohere({ baseURL: `${root}/v2`, apiKey: key }).reranking(model), maxRetries: 0 };
  const { ranking, response } = await rerank({ ...options, query, documents, ...defined({ topN: top_n }) });
  return {
    places: ranking.map((each) => each.originalIndex),
    scores: ranking.map((each) => each.score),
    documents: ranking.map((each) => each.document),
    id: response.id,
  };
}

answered((request, job) => (request.sdk === "ai-cohere" ? ai : cohere)({ ...request, key: job.key ?? request.key }, job));
