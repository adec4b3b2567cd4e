// Reply of one model in a conversation: its steps, which are streamed, with the results of its tools between them.

import { copyButton, element } from "../elements.js";
import { visible } from "../quoting.js";
import { stream } from "./connect.js";
import { STREAM_GENERATE } from "./contract.js";
import { failureView, isAbort, requestIdView } from "./failures.js";
import { MarkdownText } from "./markdown.js";
import { mediaView } from "./media.js";
import { grouped, seconds } from "./numbers.js";
import { recordViews } from "./records.js";
import { ResponseParts } from "./response-parts.js";
import { text } from "./strings.js";
import { resultsForm } from "./tools.js";

/** @typedef {import("./contract.js").Message} Message */
/** @typedef {import("./contract.js").Part} Part */
/** @typedef {import("./connect.js").Head} Head */
/** @typedef {{model: string, messages: Message[]}} SavedReply */

const FINISHES = /** @type {Record<string, string>} */ ({
  FINISH_REASON_LENGTH: text("chat.finish.length"),
  FINISH_REASON_CONTENT_FILTER: text("chat.finish.filter"),
});
const USUAL_FINISHES = ["", "FINISH_REASON_STOP", "FINISH_REASON_STOP_SEQUENCE", "FINISH_REASON_TOOL_CALLS", ...Object.keys(FINISHES)];

export class Reply {
  /**
   * @param {string} model
   * @param {{request: (model: string, more: Message[]) => object, follow: (draw: () => void) => void, ended: () => void, regenerate: () => void}} conversation
   */
  constructor(model, conversation) {
    this.model = model;
    this.messages = /** @type {Message[]} */ ([]);
    this._conversation = conversation;
    this._controller = /** @type {AbortController | null} */ (null);
    this._actions = element("div", { class: "actions" });
    this._steps = element("div");
    this.element = element("article", { class: "model", "aria-label": visible(model) }, element("h3", {}, visible(model)), this._steps, this._actions);
  }

  get isRunning() {
    return this._controller !== null;
  }

  stop() {
    this._controller?.abort();
  }

  /** Call the model, and show its response while it arrives. */
  async run() {
    const controller = (this._controller = new AbortController());
    const step = new Step(this._conversation.follow);
    this._actions.replaceChildren();
    this._steps.append(step.element);
    const request = this._conversation.request(this.model, this.messages);
    let failure = /** @type {unknown} */ (null);
    try {
      for await (const { events = [] } of stream(STREAM_GENERATE, { request }, controller.signal, (head) => step.begun(head))) {
        for (const event of events) step.apply(event);
      }
    } catch (error) {
      failure = error;
    }
    this._end(step, failure);
    this._conversation.ended();
  }

  /**
   * @param {Step} step
   * @param {unknown} error null for a complete response
   */
  _end(step, error) {
    this._controller = null;
    this._conversation.follow(() => {
      step.end(error === null);
      if (isAbort(error)) step.mark(text("state.stopped"), text("state.stopped.note"));
      else if (error !== null) step.fail(error, () => { this._drop(step); this.run(); });
      this._keep(step);
      this._showActions();
    });
  }

  /**
   * Keep a step's message for the next turn; without calls of tools if it is not complete, since they have no results.
   * @param {Step} step
   */
  _keep(step) {
    const parts = step.response.parts.filter((part) => part && (step.isComplete || !part.toolCall));
    if (parts.length) this.messages.push((step.message = { role: "ROLE_ASSISTANT", parts }));
    const calls = parts.flatMap(({ toolCall }) => toolCall ?? []);
    if (!calls.length) return;
    this._steps.append(resultsForm(calls, (results) => {
      this.messages.push({ role: "ROLE_TOOL", parts: results });
      this._steps.append(resultsView(results));
      this.run();
    }));
  }

  /** @param {Step} step */
  _drop(step) {
    step.element.remove();
    this.messages = this.messages.filter((message) => message !== step.message);
  }

  /** @param {SavedReply} saved */
  restore({ messages }) {
    this.messages = messages;
    for (const { role, parts = [] } of messages) {
      if (role === "ROLE_TOOL") {
        this._steps.append(resultsView(parts));
        continue;
      }
      const step = new Step();
      parts.forEach((partStarted, partIndex) => step.apply({ partStarted, partIndex }));
      step.end(true);
      this._steps.append(step.element);
    }
    this._showActions();
  }

  /** @returns {SavedReply} */
  get saved() {
    return { model: this.model, messages: this.messages };
  }

  _showActions() {
    const regenerate = element("button", { type: "button", class: "quiet" }, text("action.regenerate"));
    regenerate.addEventListener("click", this._conversation.regenerate);
    const copy = copyButton(text("action.copy_of", { model: visible(this.model) }), () => textOf(this.messages), this._steps);
    this._actions.replaceChildren(copy, regenerate);
  }
}

/** One response of a model: its parts and figures. */
class Step {
  /** @param {(draw: () => void) => void} [follow] draws, and scrolls to what was drawn where its reader is */
  constructor(follow = (draw) => draw()) {
    this._follow = follow;
    this.response = new ResponseParts();
    this.message = /** @type {Message | null} */ (null);
    this.isComplete = false;
    this._head = /** @type {Head} */ ({ requestId: "", dropped: [] });
    this._start = performance.now();
    this._first = 0;
    this._views = /** @type {PartView[]} */ ([]);
    this._changed = /** @type {Set<number>} */ (new Set());
    this._frame = 0;
    this._parts = element("div");
    this._state = element("p", { class: "faint" }, text("state.sending"));
    this.element = element("div", { class: "step" }, this._parts, this._state);
  }

  /** @param {Head} head */
  begun(head) {
    this._head = head;
    this._state.textContent = text("state.streaming");
  }

  /** @param {import("./contract.js").GenerateEvent} event */
  apply(event) {
    if (event.started?.droppedFields?.length) this._head.dropped = event.started.droppedFields;
    const index = this.response.apply(event);
    if (index < 0) return;
    this._first ||= performance.now();
    this._changed.add(index);
    this._frame ||= requestAnimationFrame(() => this._follow(() => this._draw()));
  }

  _draw() {
    this._frame = 0;
    for (const index of this._changed) {
      const part = this.response.parts[index];
      if (!part) continue;
      let view = this._views[index];
      if (!view) {
        view = this._views[index] = new PartView();
        this._parts.append(view.element);
      }
      view.draw(part);
    }
    this._changed.clear();
  }

  /** @param {boolean} isComplete */
  end(isComplete) {
    this.isComplete = isComplete;
    cancelAnimationFrame(this._frame);
    this._draw();
    for (const view of this._views) view?.finish();
    this._state.remove();
    const { finishReason, finishMessage, blockReason, parts } = this.response;
    if (blockReason) this._parts.append(element("p", { class: "bad" }, text("chat.blocked", { reason: visible(blockReason) })));
    else if (isComplete && !parts.length) this._parts.append(element("p", { class: "faint" }, text("chat.no_text")));
    if (FINISHES[finishReason]) this._note(FINISHES[finishReason] ?? "");
    else if (!USUAL_FINISHES.includes(finishReason)) this._note(text("chat.finish.other", { reason: finishMessage || finishReason }));
    if (this._head.dropped.length) this._note(text("chat.dropped", { fields: this._head.dropped.join(", ") }));
    if (this._head.requestId) this._showFigures();
  }

  /**
   * @param {string} label
   * @param {string} note
   */
  mark(label, note) {
    this._parts.append(element("p", {}, element("span", { class: "badge warn" }, `▲ ${label}`), " ", note));
  }

  /**
   * @param {unknown} error
   * @param {() => void} retry
   */
  fail(error, retry) {
    if (this.response.parts.length) this._parts.append(element("p", { class: "faint" }, text("state.cut.note")));
    this.element.querySelector(".figures")?.remove();
    this.element.append(failureView(error, retry));
  }

  /** @param {string} note */
  _note(note) {
    this.element.append(element("p", { class: "faint" }, note));
  }

  _showFigures() {
    const { usage } = this.response;
    const figures = [element("span", {}, text("figure.seconds", { seconds: seconds(performance.now() - this._start) }))];
    if (this._first) figures.unshift(element("span", {}, text("figure.first", { seconds: seconds(this._first - this._start) })));
    if (usage) {
      const values = { input: grouped(usage.inputTokens ?? 0), output: grouped(usage.outputTokens ?? 0) };
      figures.push(element("span", {}, text(usage.estimated ? "figure.tokens.estimated" : "figure.tokens", values)));
      if (usage.reasoningTokens) for (const view of this._views) view?.setReasoningTokens(usage.reasoningTokens);
    }
    const { cost, story } = recordViews(this._head.requestId);
    this.element.append(element("div", { class: "figures" }, ...figures, cost, requestIdView(this._head.requestId), story));
  }
}

/** Element of one part of a response. */
class PartView {
  constructor() {
    this.element = element("div", { class: "part" });
    this._text = /** @type {MarkdownText | null} */ (null);
    this._summary = /** @type {HTMLElement | null} */ (null);
    this._body = /** @type {HTMLElement | null} */ (null);
  }

  /** @param {Part} part */
  draw(part) {
    if (part.text) this._drawText(part.text.text ?? "");
    else if (part.reasoning) this._drawReasoning(part.reasoning);
    else if (part.toolCall) this._drawCall(part.toolCall);
    else if (part.media) this.element.replaceChildren(...(part.media.data || part.media.uri ? [mediaView(part.media)] : []));
    else if (part.refusal) this.element.textContent = text("chat.refusal", { text: part.refusal.text ?? "" });
    else if (part.serverToolCall) this.element.textContent = text("chat.searched", { queries: part.serverToolCall.queries?.join(", ") || part.serverToolCall.name || "" });
  }

  finish() {
    this._text?.finish();
  }

  /** @param {number} tokens */
  setReasoningTokens(tokens) {
    if (this._summary) this._summary.textContent = text("chat.reasoning.figures", { tokens: grouped(tokens) });
  }

  /** @param {string} whole */
  _drawText(whole) {
    if (!this._text) {
      this._text = new MarkdownText();
      this.element.replaceChildren(this._text.element);
    }
    this._text.append(whole.slice(this._text.source.length));
    this._text.draw();
  }

  /** @param {NonNullable<Part["reasoning"]>} reasoning */
  _drawReasoning({ texts = [], summaries = [], redacted }) {
    if (!this._body) {
      this._summary = element("summary", {}, text("chat.reasoning"));
      this._body = element("div", { class: "plain" });
      this.element.replaceChildren(element("details", { class: "reasoning" }, this._summary, this._body));
    }
    this._body.textContent = [...summaries, ...texts].join("\n\n") || (redacted ? text("chat.reasoning.hidden") : "");
  }

  /** @param {import("./contract.js").ToolCall} call */
  _drawCall({ name = "", argumentsJson, text: input }) {
    const title = element("p", {}, element("span", { class: "badge info" }, `◐ ${text("chat.tool_call", { name: visible(name) })}`));
    this.element.replaceChildren(title, element("pre", { tabindex: "0" }, element("code", {}, argumentsJson ?? input ?? "")));
  }
}

/** @param {Part[]} parts */
function resultsView(parts) {
  const results = parts.map(({ toolResult }) => element(
    "p", {}, text("chat.tool_result", { name: visible(toolResult?.name ?? "") }), ": ", element("code", {}, toolResult?.parts?.[0]?.text?.text ?? ""),
  ));
  return element("div", { class: "results" }, ...results);
}

/**
 * Return the texts of messages, without reasoning.
 * @param {Message[]} messages
 */
export function textOf(messages) {
  return messages.flatMap(({ parts = [] }) => parts.map((part) => part.text?.text ?? "")).filter(Boolean).join("\n\n");
}
