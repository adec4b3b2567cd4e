// @google/genai.
import { GoogleGenAI } from "@google/genai";
import { z } from "zod";

import { City, empty, leave, main } from "./jobs.mjs";

main(({ root, key, model, tools, version }) => {
  const sdk = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: root, apiVersion: version ?? "v1beta" } });

  function requestOf(question) {
    const contents = question.history.map(([role, text]) => ({ role: role === "user" ? "user" : "model", parts: [{ text }] }));
    const parts = [{ text: question.text }];
    for (const [mimeType, data] of [["image/png", question.image], ["application/pdf", question.file]]) {
      if (data) parts.push({ inlineData: { mimeType, data } });
    }
    contents.push({ role: "user", parts });
    if (question.before) {
      const calls = question.before.filter((part) => part.functionCall).map((part) => part.functionCall);
      const result = ({ id, name }) => ({ functionResponse: { ...(id ? { id } : {}), name, response: { output: question.gave[name] } } });
      contents.push({ role: "model", parts: question.before }, { role: "user", parts: calls.map(result) });
    }
    const config = { maxOutputTokens: question.limit };
    if (question.system) config.systemInstruction = question.system;
    const declared = [];
    if (question.tools.length) {
      const described = (name) => ({ name, description: name, parametersJsonSchema: tools[name] });
      declared.push({ functionDeclarations: question.tools.map(described) });
      const bare = { auto: { mode: "AUTO" }, required: { mode: "ANY" } };
      const named = { mode: "ANY", allowedFunctionNames: [question.choice] };
      config.toolConfig = { functionCallingConfig: bare[question.choice] ?? named };
    }
    if (question.search) declared.push({ googleSearch: {} });
    if (declared.length) config.tools = declared;
    if (question.reasoning) config.thinkingConfig = { includeThoughts: true, thinkingBudget: 1024 };
    if (question.schema) {
      config.responseMimeType = "application/json";
      config.responseJsonSchema = z.toJSONSchema(City);
    }
    if (question.stop) config.stopSequences = [question.stop];
    if (question.bad) config.temperature = 5;
    return { model, contents, config };
  }

  function shown(chunks, schema) {
    const candidates = chunks.flatMap((chunk) => chunk.candidates ?? []);
    const parts = candidates.flatMap((each) => each.content?.parts ?? []);
    const joined = (thought) => parts.filter((part) => part.text && Boolean(part.thought) === thought).map((part) => part.text).join("");
    const text = joined(false);
    const last = candidates.at(-1) ?? {};
    const usage = chunks.at(-1).usageMetadata;
    const thoughts = usage.thoughtsTokenCount ?? 0;
    const found = last.groundingMetadata ?? {};
    const texts = chunks.length > 1 ? [text] : parts.map((part) => part.text ?? ""); // a stream is one part
    return {
      ...empty,
      text,
      reasoning: joined(true),
      calls: parts.filter((part) => part.functionCall).map(({ functionCall: call }) => [call.name, call.args ?? {}]),
      citations: (found.groundingSupports ?? []).flatMap(({ segment, groundingChunkIndices }) =>
        groundingChunkIndices.map((place) => {
          const { uri, title } = found.groundingChunks[place].web;
          const bytes = Buffer.from(texts[texts.length > 1 ? (segment.partIndex ?? 0) : 0]);
          return [uri, title, bytes.subarray(segment.startIndex ?? 0, segment.endIndex).toString()];
        }),
      ),
      finish: last.finishReason ?? "",
      usage: [usage.promptTokenCount, usage.cachedContentTokenCount ?? 0, (usage.candidatesTokenCount ?? 0) + thoughts, thoughts],
      parsed: schema ? City.parse(JSON.parse(text)) : null,
      turn: parts,
    };
  }

  return {
    async ask(question) {
      return shown([await sdk.models.generateContent(requestOf(question))], question.schema);
    },
    async stream(question) {
      const chunks = [];
      for await (const chunk of await sdk.models.generateContentStream(requestOf(question))) chunks.push(chunk);
      return shown(chunks, question.schema);
    },
    async abort(question) {
      const controller = new AbortController();
      const body = requestOf(question);
      body.config.abortSignal = controller.signal;
      return leave(await sdk.models.generateContentStream(body), (chunk) => chunk.text, () => controller.abort());
    },
  };
});
