// @anthropic-ai/sdk.
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";

import { City, empty, leave, main } from "./jobs.mjs";

main(({ root, key, model, tools }) => {
  const sdk = new Anthropic({ baseURL: root, apiKey: key, maxRetries: 0 });

  function asked(wish) {
    const content = [{ type: "text", text: wish.text }];
    for (const [type, media_type, data] of [["image", "image/png", wish.image], ["document", "application/pdf", wish.file]]) {
      if (data) content.push({ type, source: { type: "base64", media_type, data } });
    }
    const messages = wish.history.map(([role, text]) => ({ role, content: text }));
    messages.push({ role: "user", content: content.length > 1 ? content : wish.text });
    if (wish.before) {
      messages.push({ role: "assistant", content: wish.before });
      const calls = wish.before.filter((block) => block.type === "tool_use");
      const result = ({ id, name }) => ({ type: "tool_result", tool_use_id: id, content: wish.gave[name] });
      messages.push({ role: "user", content: calls.map(result) });
    }
    const body = { model, max_tokens: wish.limit, messages };
    if (wish.system) body.system = wish.system;
    const declared = wish.tools.map((name) => ({ name, description: name, input_schema: tools[name] }));
    if (wish.search) declared.push({ type: "web_search_20250305", name: "web_search" });
    if (declared.length) body.tools = declared;
    if (wish.tools.length) {
      const bare = { auto: { type: "auto" }, required: { type: "any" } };
      body.tool_choice = bare[wish.choice] ?? { type: "tool", name: wish.choice };
    }
    if (wish.thinking) body.thinking = { type: "enabled", budget_tokens: 1025 };
    if (wish.schema) body.output_config = { format: zodOutputFormat(City) };
    if (wish.stop) body.stop_sequences = [wish.stop];
    if (wish.bad) body.temperature = 5;
    return body;
  }

  function shown(answer) {
    const texts = answer.content.filter((block) => block.type === "text");
    const { usage } = answer;
    const cached = usage.cache_read_input_tokens ?? 0;
    return {
      ...empty,
      text: texts.map((block) => block.text).join(""),
      thought: answer.content.filter((block) => block.type === "thinking").map((block) => block.thinking).join(""),
      calls: answer.content.filter((block) => block.type === "tool_use").map((block) => [block.name, block.input]),
      sources: texts.flatMap((block) => (block.citations ?? []).map((each) => [each.url, each.title, block.text])),
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
    async ask(wish) {
      return shown(wish.schema ? await sdk.messages.parse(asked(wish)) : await sdk.messages.create(asked(wish)));
    },
    async stream(wish) {
      return shown(await sdk.messages.stream(asked(wish)).finalMessage());
    },
    async abort(wish) {
      const stream = sdk.messages.stream(asked(wish));
      return leave(stream, (event) => event.delta?.text, () => stream.abort());
    },
  };
});
