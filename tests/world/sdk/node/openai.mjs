// openai: `format` chat or responses; with `azure` by the client of Azure; with `indents` bodies are sent indented.
import OpenAI, { AzureOpenAI } from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";

import { City, empty, leave, main } from "./jobs.mjs";

main((request) => {
  const indented = (url, init) => fetch(url, { ...init, body: JSON.stringify(JSON.parse(init.body), null, 2) });
  const options = { apiKey: request.key, maxRetries: 0, fetch: request.indents ? indented : fetch };
  const sdk = request.azure
    ? new AzureOpenAI({ ...options, endpoint: request.root, apiVersion: "2026-06-01" })
    : new OpenAI({ ...options, baseURL: `${request.root}/v1` });
  return request.format === "chat" ? chat(sdk, request) : responses(sdk, request);
});

const dataUrl = (type, data) => `data:${type};base64,${data}`;

function chat(sdk, { model, tools }) {
  function requestOf(question) {
    const content = [{ type: "text", text: question.text }];
    if (question.image) content.push({ type: "image_url", image_url: { url: dataUrl("image/png", question.image) } });
    if (question.file) {
      content.push({ type: "file", file: { filename: "a.pdf", file_data: dataUrl("application/pdf", question.file) } });
    }
    const messages = question.history.map(([role, text]) => ({ role, content: text }));
    if (question.system) messages.unshift({ role: "system", content: question.system });
    messages.push({ role: "user", content: content.length > 1 ? content : question.text });
    if (question.before) {
      messages.push(question.before);
      for (const call of question.before.tool_calls) {
        messages.push({ role: "tool", tool_call_id: call.id, content: question.gave[call.function.name] });
      }
    }
    const body = { model, messages, max_completion_tokens: question.limit };
    if (question.tools.length) {
      const described = (name) => ({ name, description: name, parameters: tools[name] });
      body.tools = question.tools.map((name) => ({ type: "function", function: described(name) }));
      const bare = ["auto", "required"].includes(question.choice);
      body.tool_choice = bare ? question.choice : { type: "function", function: { name: question.choice } };
    }
    if (question.reasoning) body.reasoning_effort = "high";
    if (question.schema) body.response_format = zodResponseFormat(City, "city");
    if (question.search) body.web_search_options = {};
    if (question.stop) body.stop = [question.stop];
    if (question.bad) body.temperature = 5;
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
      reasoning: thought,
      calls: (calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
      citations: (message.annotations ?? []).map(({ url_citation: each }) => [
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
    async ask(question) {
      const body = requestOf(question);
      const answer = question.schema ? await sdk.chat.completions.parse(body) : await sdk.chat.completions.create(body);
      return shown(answer, answer.choices[0].message.reasoning_content ?? "");
    },
    async stream(question) {
      const stream = sdk.chat.completions.stream({ ...requestOf(question), stream_options: { include_usage: true } });
      let thought = ""; // the helper keeps the last fragment only of what it does not know
      for await (const chunk of stream) thought += chunk.choices[0]?.delta.reasoning_content ?? "";
      return shown(await stream.finalChatCompletion(), thought);
    },
    async abort(question) {
      const stream = await sdk.chat.completions.create({ ...requestOf(question), stream: true });
      return leave(stream, (chunk) => chunk.choices[0]?.delta.content, () => stream.controller.abort());
    },
  };
}

function responses(sdk, { model, tools, keeps }) {
  function requestOf(question) {
    const content = [{ type: "input_text", text: question.text }];
    if (question.image) content.push({ type: "input_image", image_url: dataUrl("image/png", question.image), detail: "auto" });
    if (question.file) content.push({ type: "input_file", filename: "a.pdf", file_data: dataUrl("application/pdf", question.file) });
    let input = question.history.map(([role, text]) => ({ role, content: text }));
    input.push({ role: "user", content: content.length > 1 ? content : question.text });
    const body = { model, max_output_tokens: question.limit, store: Boolean(keeps) };
    if (question.before) {
      if (keeps) {
        input = [];
        body.previous_response_id = question.before.id;
      } else {
        input.push(...question.before.output.map(sendable));
      }
      for (const call of question.before.output.filter((item) => item.type === "function_call")) {
        input.push({ type: "function_call_output", call_id: call.call_id, output: question.gave[call.name] });
      }
    }
    body.input = input;
    if (question.system) body.instructions = question.system;
    const declared = question.tools.map((name) => ({ type: "function", name, description: name, parameters: tools[name], strict: false }));
    if (question.search) declared.push({ type: "web_search" });
    if (declared.length) body.tools = declared;
    if (question.tools.length) {
      body.tool_choice = ["auto", "required"].includes(question.choice) ? question.choice : { type: "function", name: question.choice };
    }
    if (question.reasoning) {
      body.reasoning = { effort: "high", summary: "auto" };
      if (!keeps) body.include = ["reasoning.encrypted_content"];
    }
    if (question.schema) body.text = { format: zodTextFormat(City, "city") };
    if (question.bad) body.temperature = 5;
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
      reasoning: thoughts.map((each) => each.text).join(""),
      calls: answer.output.filter((item) => item.type === "function_call").map((item) => [item.name, JSON.parse(item.arguments)]),
      citations: texts.flatMap((part) =>
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
    async ask(question) {
      const body = requestOf(question);
      return shown(question.schema ? await sdk.responses.parse(body) : await sdk.responses.create(body));
    },
    async stream(question) {
      const stream = sdk.responses.stream(requestOf(question));
      const failed = [];
      stream.on("response.failed", ({ response }) => failed.push(response.error.message));
      try {
        return shown(await stream.finalResponse());
      } catch (error) {
        throw Object.assign(error, { failed });
      }
    },
    async abort(question) {
      const stream = await sdk.responses.create({ ...requestOf(question), stream: true });
      const textOf = (event) => (event.type === "response.output_text.delta" ? event.delta : "");
      return leave(stream, textOf, () => stream.controller.abort());
    },
  };
}
