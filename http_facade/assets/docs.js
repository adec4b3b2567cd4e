// API reference: the operations of /openapi.json, each with a form that calls it.

import { byId, element, prose, snippet } from "./elements.js";
import { headers, isKept, key, setKey } from "./gateway.js";
import { resolve, schemaView } from "./schemas.js";
import { curl } from "./snippets.js";

const JSON_TYPE = "application/json";
const FORM_TYPE = "multipart/form-data";
let description = {};

function operationView(path, method, operation) {
  const title = element("summary", {}, element("span", { class: "method" }, method.toUpperCase()), element("code", {}, path), " ", operation.summary);
  const view = element("details", { id: operation.operationId }, title);
  view.addEventListener("toggle", () => {
    if (view.open && view.children.length === 1) view.append(operationBody(path, method, operation));
  });
  view.dataset.words = `${method} ${path} ${operation.summary} ${operation.tags}`.toLowerCase();
  return view;
}

function operationBody(path, method, operation) {
  const parameters = operation.parameters ?? [];
  const content = operation.requestBody?.content ?? {};
  return element(
    "div",
    { class: "inner" },
    element("p", {}, ...prose(operation.description)),
    ...(parameters.length ? [element("h3", {}, "Parameters"), parameterList(parameters)] : []),
    ...Object.entries(content).flatMap(([type, { schema }]) => [
      element("h3", {}, "Body: ", element("code", {}, type)),
      schemaView(description, schema["x-message-schema"] ?? schema),
    ]),
    element("h3", {}, "Responses"),
    ...Object.entries(operation.responses).map(responseView),
    element("h3", {}, "Call it"),
    callForm(path, method, operation, parameters, content),
  );
}

function parameterList(parameters) {
  return element("ul", { class: "schema" }, ...parameters.map((parameter) => element(
    "li", {},
    element("code", {}, parameter.name), ` in ${parameter.in}`, parameter.required ? ", required" : "",
    ". ", ...prose(parameter.description),
    parameter.schema.enum ? ` One of ${parameter.schema.enum.join(", ")}.` : "",
  )));
}

function responseView([status, given]) {
  const response = resolve(description, given);
  const view = element("details", {}, element("summary", {}, element("strong", {}, status), " ", ...prose(response.description)));
  view.addEventListener("toggle", () => {
    if (!view.open || view.children.length > 1) return;
    for (const [type, { schema }] of Object.entries(response.content ?? {})) {
      const shown = schema["x-event-schema"] ?? schema["x-message-schema"] ?? schema;
      view.append(element("p", {}, element("code", {}, type)), schemaView(description, shown));
    }
  });
  return view;
}

// --- calls

function callForm(path, method, operation, parameters, content) {
  const inputs = parameters.filter(({ in: place }) => place !== "header").map((parameter) => {
    const input = element("input", { type: "text", id: `${operation.operationId}-${parameter.name}`, required: parameter.required, value: parameter.example });
    return { parameter, input };
  });
  const takesJson = content[JSON_TYPE] !== undefined;
  const form = takesJson ? undefined : content[FORM_TYPE]?.example;
  const body = element("textarea", { class: "code", rows: "8", id: `${operation.operationId}-body`, spellcheck: "false" });
  if (takesJson) body.value = JSON.stringify(content[JSON_TYPE].example ?? {}, null, 2);
  const output = element("pre", { tabindex: "0", hidden: true, "aria-label": "Response" });
  const status = element("p", { role: "status" });
  const target = () => targetOf(path, inputs);
  const command = () => curl(method.toUpperCase(), `${location.origin}${target()}`, key() || "YOUR_KEY", takesJson ? body.value : null, form);
  const view = element(
    "form", {},
    ...inputs.map(({ parameter, input }) => element("p", {}, element("label", { for: input.id }, parameter.name), input)),
    ...(takesJson ? [element("label", { for: body.id }, "Body"), body] : []),
    ...(form ? [] : [element("div", { class: "row" }, element("button", {}, "Send"))]),
    status, output,
    snippet("curl", command),
  );
  view.addEventListener("input", () => view.querySelector(".snippet code").replaceChildren(command()));
  view.addEventListener("submit", (event) => {
    event.preventDefault();
    send(method, target(), takesJson ? body.value : undefined, status, output);
  });
  return view;
}

function targetOf(path, inputs) {
  const query = new URLSearchParams();
  let target = path;
  for (const { parameter, input } of inputs) {
    if (parameter.in === "path") target = target.replace(`{${parameter.name}}`, encodeURIComponent(input.value || parameter.name));
    else if (input.value) query.set(parameter.name, input.value);
  }
  return query.size ? `${target}?${query}` : target;
}

async function send(method, target, body, status, output) {
  status.textContent = "Sending …";
  output.hidden = true;
  output.textContent = "";
  try {
    const given = body === undefined ? {} : { body };
    const sent = headers(body === undefined ? {} : { "content-type": JSON_TYPE });
    const response = await fetch(target, { method: method.toUpperCase(), headers: sent, ...given });
    status.textContent = `${response.status} ${response.headers.get("content-type") ?? ""}, ${response.headers.get("x-request-id") ?? ""}`;
    status.className = response.ok ? "good" : "bad";
    output.hidden = false;
    await show(response, output);
  } catch (error) {
    status.textContent = `No response: ${error.message}`;
    status.className = "bad";
  }
}

/** Show the body of a response while it is received. */
async function show(response, output) {
  const type = response.headers.get("content-type") ?? "";
  if (!/json|text/.test(type)) {
    output.textContent = `${(await response.blob()).size} bytes`;
    return;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) output.append(part.value);
  if (!type.startsWith(JSON_TYPE)) return;
  try {
    output.textContent = JSON.stringify(JSON.parse(output.textContent), null, 2);
  } catch {
    // shown as it came
  }
}

// --- page

function filter() {
  const words = byId("filter").value.toLowerCase().split(/\s+/);
  let count = 0;
  for (const group of byId("operations").children) {
    let shown = 0;
    for (const view of group.querySelectorAll(":scope > details")) {
      view.hidden = !words.every((word) => view.dataset.words.includes(word));
      shown += !view.hidden;
    }
    group.hidden = !shown;
    count += shown;
  }
  byId("count").textContent = `${count} ${count === 1 ? "operation" : "operations"}`;
}

async function load() {
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`status ${response.status}`);
    description = await response.json();
  } catch (error) {
    byId("about").textContent = `The description could not be loaded: ${error.message}`;
    byId("about").className = "bad";
    return;
  }
  byId("about").textContent = description.info.description;
  const groups = description.tags.map(({ name }) => [name, element("section", { "aria-label": name }, element("h2", {}, name))]);
  const sections = Object.fromEntries(groups);
  for (const [path, operations] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      sections[operation.tags[0]].append(operationView(path, method, operation));
    }
  }
  byId("operations").append(...Object.values(sections));
  filter();
  const linked = location.hash && byId(location.hash.slice(1));
  if (linked) {
    linked.open = true;
    linked.scrollIntoView();
  }
}

byId("find").addEventListener("submit", (event) => event.preventDefault());
byId("filter").addEventListener("input", filter);
byId("key").value = key();
byId("key").addEventListener("input", () => setKey(byId("key").value, isKept()));
load();
