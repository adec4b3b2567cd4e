// openai: `format` chat or responses; with `indents` bodies are sent indented.
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";

import { City, empty, leave, main } from "./jobs.mjs";

main((request) => {
  const indented = (url, init) => fetch(url, { ...init, body: JSON.stringify(JSON.parse(init.body), null, 2) });
  const sdk = new OpenAI({
    baseURL: `${request.root}/v1`,
    apiKey: request.key,
    maxRetries: 0,
    fetch: request.indents ? indented : fetch,
  });
  return request.format === "chat" ? chat(sdk, request) : responses(sdk, request);
});

const dataUrl = (type, data) => `data:${type};base64,${data}`;

function chat(sdk, { model, tools }) {
  function asked(wish) {
    const content = [{ type: "text", text: wish.text }];
    if (wish.image) content.push({ type: "image_url", image_url: { url: dataUrl("image/png", wish.image) } });
    if (wish.file) {
      content.push({ type: "file", file: { filename: "a.pdf", file_data: dataUrl("application/pdf", wish.file) } });
    }
    const messages = wish.history.map(([role, text]) => ({ role, content: text }));
    if (wish.system) messages.unshift({ role: "system", content: wish.system });
    messages.push({ role: "user", content: content.length > 1 ? content : wish.text });
    if (wish.before) {
      messages.push(wish.before);
      for (const call of wish.before.tool_calls) {
        messages.push({ role: "tool", tool_call_id: call.id, content: wish.gave[call.function.name] });
      }
    }
    const body = { model, messages, max_completion_tokens: wish.limit };
    if (wish.tools.length) {
      const described = (name) => ({ name, description: name, parameters: tools[name] });
      body.tools = wish.tools.map((name) => ({ type: "function", function: described(name) }));
      const bare = ["auto", "required"].includes(wish.choice);
      body.tool_choice = bare ? wish.choice : { type: "function", function: { name: wish.choice } };
    }
    if (wish.thinking) body.reasoning_effort = "high";
    if (wish.schema) body.response_format = zodResponseFormat(City, "city");
    if (wish.search) body.web_search_options = {};
    if (wish.stop) body.stop = [wish.stop];
    if (wish.bad) body.temperature = 5;
    return body;
  }

  function shown(answer, thought) {
    const [{ message, finish_reason }] = answer.choices;
    const { usage } = answer;
    // What the helpers add is not sent back; the thoughts, which no type has, are.
    const { parsed, tool_calls, reasoning_content, ...rest } = message;
    const calls = tool_calls?.map(({ id, type, function: { name, arguments: text } }) => ({ id, type, function: { name, arguments: text } }));
    const turn = { ...rest, ...(calls?.length ? { tool_calls: calls } : {}), ...(thought ? { reasoning_content: thought } : {}) };
    return {
      ...empty,
      text: message.content ?? "",
      thought,
      calls: (calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
      sources: (message.annotations ?? []).map(({ url_citation: each }) => [
        each.url,
        each.title,
        [...message.content].slice(each.start_index, each.end_index).join(""),
      ]),
      refusal: message.refusal ?? "",
      finish: finish_reason,
      usage: [
        usage.prompt_tokens,
        usage.prompt_tokens_details?.cached_tokens ?? 0,
        usage.completion_tokens,
        usage.completion_tokens_details?.reasoning_tokens ?? 0,
      ],
      parsed: parsed ?? null,
      turn,
    };
  }

  return {
    async ask(wish) {
      const body = asked(wish);
      const answer = wish.schema ? await sdk.chat.completions.parse(body) : await sdk.chat.completions.create(body);
      return shown(answer, answer.choices[0].message.reasoning_content ?? "");
    },
    async stream(wish) {
      const stream = sdk.chat.completions.stream({ ...asked(wish), stream_options: { include_usage: true } });
      let thought = ""; // the helper keeps the last fragment only of what it does not know
      for await (const chunk of stream) thought += chunk.choices[0]?.delta.reasoning_content ?? "";
      return shown(await stream.finalChatCompletion(), thought);
    },
    async abort(wish) {
      const stream = await sdk.chat.completions.create({ ...asked(wish), stream: true });
      return leave(stream, (chunk) => chunk.choices[0]?.delta.content, () => stream.controller.abort());
    },
  };
}

function responses(sdk, { model, tools, keeps }) {
  function asked(wish) {
    const content = [{ type: "input_text", text: wish.text }];
    if (wish.image) content.push({ type: "input_image", image_url: dataUrl("image/png", wish.image), detail: "auto" });
    if (wish.file) content.push({ type: "input_file", filename: "a.pdf", file_data: dataUrl("application/pdf", wish.file) });
    let input = wish.history.map(([role, text]) => ({ role, content: text }));
    input.push({ role: "user", content: content.length > 1 ? content : wish.text });
    const body = { model, max_output_tokens: wish.limit, store: Boolean(keeps) };
    if (wish.before) {
      if (keeps) {
        input = [];
        body.previous_response_id = wish.before.id;
      } else {
        input.push(...wish.before.output.map(sendable));
      }
      for (const call of wish.before.output.filter((item) => item.type === "function_call")) {
        input.push({ type: "function_call_output", call_id: call.call_id, output: wish.gave[call.name] });
      }
    }
    body.input = input;
    if (wish.system) body.instructions = wish.system;
    const declared = wish.tools.map((name) => ({ type: "function", name, description: name, parameters: tools[name], strict: false }));
    if (wish.search) declared.push({ type: "web_search" });
    if (declared.length) body.tools = declared;
    if (wish.tools.length) {
      body.tool_choice = ["auto", "required"].includes(wish.choice) ? wish.choice : { type: "function", name: wish.choice };
    }
    if (wish.thinking) {
      body.reasoning = { effort: "high", summary: "auto" };
      if (!keeps) body.include = ["reasoning.encrypted_content"];
    }
    if (wish.schema) body.text = { format: zodTextFormat(City, "city") };
    if (wish.bad) body.temperature = 5;
    return body;
  }

  // Without what the parse helpers add, which the API refuses.
  function sendable(value) {
    if (Array.isArray(value)) return value.map(sendable);
    if (value === null || typeof value !== "object") return value;
    const kept = Object.entries(value).filter(([key]) => !["parsed", "parsed_arguments"].includes(key));
    return Object.fromEntries(kept.map(([key, each]) => [key, sendable(each)]));
  }

  function shown(answer) {
    if (answer.error) throw Object.assign(new Error(answer.error.message), { status: null });
    const parts = answer.output.filter((item) => item.type === "message").flatMap((item) => item.content);
    const texts = parts.filter((part) => part.type === "output_text");
    const thoughts = answer.output.filter((item) => item.type === "reasoning").flatMap((item) => item.summary);
    return {
      ...empty,
      text: texts.map((part) => part.text).join(""),
      thought: thoughts.map((each) => each.text).join(""),
      calls: answer.output.filter((item) => item.type === "function_call").map((item) => [item.name, JSON.parse(item.arguments)]),
      sources: texts.flatMap((part) =>
        part.annotations.map((each) => [each.url, each.title, [...part.text].slice(each.start_index, each.end_index).join("")]),
      ),
      refusal: parts.filter((part) => part.type === "refusal").map((part) => part.refusal).join(""),
      finish: answer.incomplete_details?.reason ?? answer.status,
      usage: [
        answer.usage.input_tokens,
        answer.usage.input_tokens_details.cached_tokens,
        answer.usage.output_tokens,
        answer.usage.output_tokens_details.reasoning_tokens,
      ],
      parsed: answer.output_parsed ?? null,
      turn: answer,
    };
  }

  return {
    async ask(wish) {
      const body = asked(wish);
      return shown(wish.schema ? await sdk.responses.parse(body) : await sdk.responses.create(body));
    },
    async stream(wish) {
      const stream = sdk.responses.stream(asked(wish));
      const failed = [];
      stream.on("response.failed", ({ response }) => failed.push(response.error.message));
      try {
        return shown(await stream.finalResponse());
      } catch (error) {
        throw Object.assign(error, { failed });
      }
    },
    async abort(wish) {
      const stream = await sdk.responses.create({ ...asked(wish), stream: true });
      const textOf = (event) => (event.type === "response.output_text.delta" ? event.delta : "");
      return leave(stream, textOf, () => stream.controller.abort());
    },
  };
}
