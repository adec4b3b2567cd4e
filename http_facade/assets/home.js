// Home page: health, models of a key, a conversation, and lines of code.

import { byId, element, snippet } from "./elements.js";
import { call, events, isKept, key, setKey } from "./gateway.js";
import { visible } from "./quoting.js";
import { lines } from "./snippets.js";

const POLL_MILLISECONDS = 1000;
const OPERATIONS = [
  ["MODEL_OPERATION_GENERATE", "Chat", chat],
  ["MODEL_OPERATION_GENERATE_IMAGE", "Images", images],
  ["MODEL_OPERATION_CREATE_VIDEO", "Videos", video],
];
const conversation = [];
let running = null;

// --- health and models

async function showHealth() {
  const shown = byId("health");
  try {
    const response = await fetch("/readyz");
    const { status, reasons = [] } = await response.json();
    shown.textContent = [status, ...reasons].join(": ");
    shown.className = response.ok ? "good" : "bad";
  } catch {
    shown.textContent = "not reachable";
    shown.className = "bad";
  }
}

async function showModels() {
  byId("key-error").textContent = "";
  let models;
  try {
    const response = await call("/umg.v1.ModelService/ListModels", { body: {} });
    ({ models = [] } = await response.json());
  } catch (error) {
    byId("models").hidden = true;
    byId("key-error").textContent = error.message;
    offer([]);
    return;
  }
  byId("model-list").replaceChildren(...models.map(modelItem));
  const unpriced = models.filter((model) => !model.prices?.length).length;
  const note = unpriced ? `, ${unpriced} without a price: keys with a budget are refused` : "";
  byId("models-title").textContent = `Models of this key: ${models.length}${note}`;
  byId("models").hidden = false;
  offer(models);
  await showListProblems();
}

/** Show the model lists of providers that could not be read, to administrators: others may not see channels. */
async function showListProblems() {
  const shown = byId("list-problems");
  const asked = key();
  shown.replaceChildren();
  shown.setAttribute("aria-busy", "true");
  try {
    const own = await (await call("/umg.v1.AdminService/GetKey", { body: {} })).json();
    if (!own.key?.settings?.administrator) return;
    const { modelLists = [] } = await (await call("/umg.v1.AdminService/ListChannels", { body: {} })).json();
    if (key() === asked) shown.replaceChildren(...modelLists.filter((list) => list.problem).map(listProblem));
  } catch {
    // the models are of use without it
  } finally {
    shown.setAttribute("aria-busy", "false");
  }
}

function listProblem({ channel, problem, failureTime }) {
  const time = new Date(failureTime).toLocaleString();
  return element("li", {}, `The model list of ${visible(channel)} could not be read (${time}): ${visible(problem)}`);
}

function modelItem(model) {
  const can = (model.operations ?? []).map((name) => name.replace("MODEL_OPERATION_", "").replaceAll("_", " ").toLowerCase());
  if (!model.prices?.length) can.push("no price");
  return element("li", {}, element("code", {}, visible(model.id)), " ", element("span", { class: "faint" }, can.join(", ")));
}

/** Offer the models that can be tried here. */
function offer(models) {
  const select = byId("model");
  const groups = OPERATIONS.map(([operation, label], index) => {
    const able = models.filter((model) => model.operations?.includes(operation));
    const options = able.map(({ id }) => element("option", { value: `${index} ${id}` }, visible(id)));
    return element("optgroup", { label }, ...options);
  }).filter((group) => group.children.length);
  select.replaceChildren(...(groups.length ? groups : [element("option", { value: "" }, "No model to try with this key")]));
  select.disabled = !groups.length;
  showSnippets();
}

function chosen() {
  const [index, ...id] = byId("model").value.split(" ");
  return { operation: index === "" ? null : OPERATIONS[index], model: id.join(" ") };
}

// --- conversation

function say(role, ...content) {
  const article = element("article", { class: role }, ...content);
  byId("log").append(article);
  article.scrollIntoView({ block: "nearest" });
  return article;
}

async function send() {
  const { operation, model } = chosen();
  const prompt = byId("prompt").value.trim();
  const failed = byId("chat-error");
  failed.textContent = operation ? "" : "Enter a key and choose a model first.";
  if (!operation || !prompt || running) return;
  running = new AbortController();
  say("user", prompt);
  byId("prompt").value = "";
  const response = say("model");
  setBusy(true);
  try {
    await operation[2](model, prompt, response, running.signal);
  } catch (error) {
    failed.textContent = error.name === "AbortError" ? "Stopped." : error.message;
    if (!response.hasChildNodes()) response.remove();
  }
  running = null;
  setBusy(false);
}

/** Screen readers announce the response when it is complete: word by word they would interrupt themselves. */
function setBusy(busy) {
  byId("log").setAttribute("aria-busy", String(busy));
  byId("send").disabled = busy;
  byId("stop").disabled = !busy;
}

async function chat(model, prompt, response, signal) {
  conversation.push({ role: "user", content: prompt });
  const body = { model, messages: conversation, stream: true };
  const text = document.createTextNode("");
  try {
    for await (const event of events(await call("/v1/chat/completions", { body, signal }))) {
      if (event.error) throw new Error(event.error.message);
      const delta = event.choices?.[0]?.delta ?? {};
      if (delta.content) text.data += delta.content;
      if (delta.content && !text.isConnected) response.append(text);
      for (const image of delta.images ?? []) response.append(picture(image.image_url.url, prompt));
    }
  } finally {
    if (text.data) conversation.push({ role: "assistant", content: text.data });
    else conversation.pop();
  }
  if (!response.hasChildNodes()) response.append("The model returned no text.");
}

async function images(model, prompt, response, signal) {
  response.append("Making an image …");
  const body = { model, prompt, response_format: "b64_json" };
  const made = await call("/v1/images/generations", { body, signal, headers: { "x-umg-shape": "sdk" } })
    .catch((error) => { response.replaceChildren(); throw error; });
  const { data } = await made.json();
  response.replaceChildren(...data.map((image) => picture(image.url ?? dataUrl(image.b64_json), prompt)));
}

const TYPES = { iVBOR: "image/png", "/9j/": "image/jpeg", UklGR: "image/webp", R0lGO: "image/gif" };

function dataUrl(base64) {
  const [, type] = Object.entries(TYPES).find(([start]) => base64.startsWith(start)) ?? ["", "image/png"];
  return `data:${type};base64,${base64}`;
}

/** Return an image. One of another site is a link: this page loads nothing from elsewhere. */
function picture(url, prompt) {
  const { protocol, origin } = new URL(url, location.href);
  if (protocol === "data:" || origin === location.origin) return element("img", { src: url, alt: `Image of: ${prompt}` });
  return element("a", { href: protocol.startsWith("http") ? url : "#", rel: "noreferrer", target: "_blank" }, "Open the image");
}

async function video(model, prompt, response, signal) {
  response.append("Submitting …");
  try {
    const created = await (await call("/v1/video/generations", { body: { model, prompt }, signal })).json();
    const path = encodeURIComponent(created.task_id);
    for (let task = created; task.status !== "succeeded"; ) {
      if (task.status === "failed") throw new Error(task.fail_reason);
      response.textContent = `Video task ${task.task_id}: ${task.status} …`;
      await pause(POLL_MILLISECONDS, signal);
      task = await (await call(`/v1/video/generations/${path}`, { signal })).json();
    }
    const file = await (await call(`/v1/videos/${path}/content`, { signal })).blob();
    response.replaceChildren(element("video", { controls: true, src: URL.createObjectURL(file), "aria-label": `Video of: ${prompt}` }));
  } catch (error) {
    response.replaceChildren();
    throw error;
  }
}

function pause(milliseconds, signal) {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); fail(signal.reason); }, { once: true });
  });
}

// --- code

function showSnippets() {
  const { model } = chosen();
  const made = lines(location.origin, key() || "YOUR_KEY", model || "MODEL");
  byId("snippets").replaceChildren(...made.map(([title, text]) => snippet(title, () => text)));
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(byId("key").value, byId("remember").checked);
  showModels();
});
byId("remember").addEventListener("change", () => setKey(byId("key").value, byId("remember").checked));
byId("chat").addEventListener("submit", (event) => { event.preventDefault(); send(); });
byId("prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
byId("stop").addEventListener("click", () => running?.abort());
byId("clear").addEventListener("click", () => {
  running?.abort();
  conversation.length = 0;
  byId("log").replaceChildren();
  byId("prompt").focus();
});
byId("model").addEventListener("change", showSnippets);
byId("key").value = key();
byId("remember").checked = isKept();
showHealth();
showSnippets();
if (key()) showModels();
