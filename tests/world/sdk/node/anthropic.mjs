// @anthropic-ai/sdk.
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";

import { City, empty, leave, main } from "./jobs.mjs";

main(({ root, key, model, tools }) => {
  const sdk = new Anthropic({ baseURL: root, apiKey: key, maxRetries: 0 });

  function requestOf(question) {
    const content = [{ type: "text", text: question.text }];
    for (const [type, media_type, data] of [["image", "image/png", question.image], ["document", "application/pdf", question.file]]) {
      if (data) content.push({ type, source: { type: "base64", media_type, data } });
    }
    const messages = question.history.map(([role, text]) => ({ role, content: text }));
    messages.push({ role: "user", content: content.length > 1 ? content : question.text });
    if (question.before) {
      messages.push({ role: "assistant", content: question.before });
      const calls = question.before.filter((block) => block.type === "tool_use");
      const result = ({ id, name }) => ({ type: "tool_result", tool_use_id: id, content: question.gave[name] });
      messages.push({ role: "user", content: calls.map(result) });
    }
    const body = { model, max_tokens: question.limit, messages };
    if (question.system) body.system = question.system;
    const declared = question.tools.map((name) => ({ name, description: name, input_schema: tools[name] }));
    if (question.search) declared.push({ type: "web_search_20250305", name: "web_search" });
    if (declared.length) body.tools = declared;
    if (question.tools.length) {
      const bare = { auto: { type: "auto" }, required: { type: "any" } };
      body.tool_choice = bare[question.choice] ?? { type: "tool", name: question.choice };
    }
    if (question.reasoning) body.thinking = { type: "enabled", budget_tokens: 1025 };
    if (question.schema) body.output_config = { format: zodOutputFormat(City) };
    if (question.stop) body.stop_sequences = [question.stop];
    if (question.bad) body.temperature = 5;
    return body;
  }

  function shown(answer) {
    const texts = answer.content.filter((block) => block.type === "text");
    const { usage } = answer;
    const cached = usage.cache_read_input_tokens ?? 0;
    return {
      ...empty,
      text: texts.map((block) => block.text).join(""),
      reasoning: answer.content.filter((block) => block.type === "thinking").map((block) => block.thinking).join(""),
      calls: answer.content.filter((block) => block.type === "tool_use").map((block) => [block.name, block.input]),
      citations: texts.flatMap((block) => (block.citations ?? []).map((each) => [each.url, each.title, block.text])),
      refusal: answer.stop_details?.explanation ?? "",
      finish: answer.stop_reason,
      usage: [
        usage.input_tokens + cached + (usage.cache_creation_input_tokens ?? 0),
        cached,
        usage.output_tokens,
        usage.output_tokens_details?.thinking_tokens ?? 0,
      ],
      parsed: answer.parsed_output ?? null,
      turn: answer.content.map(({ parsed, parsed_output, ...block }) => block),
    };
  }

  return {
    async ask(question) {
      return shown(question.schema ? await sdk.messages.parse(requestOf(question)) : await sdk.messages.create(requestOf(question)));
    },
    async stream(question) {
      return shown(await sdk.messages.stream(requestOf(question)).finalMessage());
    },
    async abort(question) {
      const stream = sdk.messages.stream(requestOf(question));
      return leave(stream, (event) => event.delta?.text, () => stream.abort());
    },
  };
});
