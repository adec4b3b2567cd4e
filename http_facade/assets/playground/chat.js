// Chat: a conversation with one model, or with two side by side.

import { element } from "../elements.js";
import { visible } from "../quoting.js";
import { chatFields } from "./chat-fields.js";
import { STREAM_GENERATE, without } from "./contract.js";
import { FieldsForm } from "./fields.js";
import { Attachments, mediaView, modalityOf, partOf } from "./media.js";
import { Reply, textOf } from "./reply.js";
import { text } from "./strings.js";
import { ToolsEditor } from "./tools.js";

/** @typedef {import("./contract.js").Message} Message */
/** @typedef {import("./contract.js").Part} Part */
/** @typedef {import("./shell.js").Shell} Shell */
/** @typedef {import("./reply.js").SavedReply} SavedReply */
/** @typedef {{user: Message, element: HTMLElement, replies: Reply[]}} Exchange */
/**
 * @typedef {object} SavedChat
 * @property {string} system
 * @property {import("./fields.js").Values} settings
 * @property {import("./tools.js").Tool[]} tools
 * @property {{user: Message, replies: SavedReply[]}[]} exchanges
 */

const FOLLOW_PIXELS = 120; // from the end of the log, within which a reader follows it

export class ChatView {
  /** @param {Shell} shell */
  constructor(shell) {
    this._shell = shell;
    this._exchanges = /** @type {Exchange[]} */ ([]);
    this._edited = /** @type {Exchange | null} */ (null);
    this._draft = ""; // written before an earlier message was edited
    this._form = new FieldsForm(() => shell.changed());
    this._tools = new ToolsEditor(() => shell.changed());
    this.settings = element("div", {}, this._form.element, this._tools.element);
    this._system = element("textarea", { rows: "2", id: "system" });
    this._system.addEventListener("input", () => shell.changed());
    this._systemView = element("details", {}, element("summary", {}, text("chat.system")), element("label", { for: "system", class: "faint" }, text("chat.system.note")), this._system);
    this._log = element("div", { id: "log", role: "log", "aria-live": "polite", "aria-label": text("kind.chat") });
    this._empty = element("p", { class: "faint" }, text("chat.empty"));
    this._message = element("textarea", { id: "prompt", rows: "3", "aria-describedby": "prompt-note" });
    this._files = new Attachments({ label: text("action.attach"), changed: () => shell.changed(), refuses: (file) => this._refusal(file) });
    this._editing = element("p", { class: "faint", role: "status" });
    this._send = element("button", { id: "send" }, text("action.send"));
    this._stop = element("button", { id: "stop", type: "button", class: "quiet", disabled: true }, text("action.stop"));
    this._composer = this._messageForm();
    this.element = element("div", { class: "chat" }, this._systemView, this._empty, this._log, this._composer);
  }

  _messageForm() {
    const form = element(
      "form", { class: "composer" },
      this._editing,
      element("label", { for: "prompt" }, text("chat.message")),
      this._message,
      element("p", { class: "faint", id: "prompt-note" }, text("chat.message.note")),
      element("div", { class: "row" }, this._files.element, element("span", { class: "grow" }), this._stop, this._send),
    );
    form.addEventListener("submit", (event) => { event.preventDefault(); this._submit(); });
    form.addEventListener("dragover", (event) => event.preventDefault());
    form.addEventListener("drop", (event) => { event.preventDefault(); this._files.add(event.dataTransfer?.files ?? []); });
    this._message.addEventListener("paste", (event) => {
      if (event.clipboardData?.files.length) { event.preventDefault(); this._files.add(event.clipboardData.files); }
    });
    this._message.addEventListener("input", () => this._shell.changed());
    this._message.addEventListener("keydown", (event) => this._key(event));
    this._stop.addEventListener("click", () => this.stop());
    return form;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const last = this._exchanges.at(-1);
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this._submit();
    } else if (event.key === "ArrowUp" && !this._message.value && last) {
      event.preventDefault();
      this._edit(last);
    }
  }

  stop() {
    for (const { replies } of this._exchanges) for (const reply of replies) reply.stop();
  }

  modelChanged() {
    this._form.show(chatFields(this._shell.model()));
    const model = this._shell.model();
    this._tools.element.hidden = model !== undefined && !model.capabilities?.tools; // the JSON has no false
    this._files.element.hidden = this._modalities()?.length === 0;
  }

  /** Return the kinds of files that the model reads; null if they are not known. */
  _modalities() {
    const model = this._shell.model();
    return model ? model.capabilities?.inputModalities ?? [] : null;
  }

  /** @param {import("./media.js").Attachment} file */
  _refusal(file) {
    const kind = modalityOf(file);
    const known = this._modalities();
    return known && !known.includes(kind) ? text("chat.file_kind", { kind, name: file.name }) : "";
  }

  /** Return the call that Send makes now, for the code. */
  call() {
    const user = this._userMessage();
    const history = this._history(this._exchanges, 0);
    return { method: STREAM_GENERATE, message: { request: this._request(this._shell.modelIds()[0] ?? "", user.parts?.length ? [...history, user] : history) } };
  }

  /** @returns {Message} */
  _userMessage() {
    const written = this._message.value.trim();
    const parts = /** @type {Part[]} */ (written ? [{ text: { text: written } }] : []);
    return { role: "ROLE_USER", parts: [...parts, ...this._files.files.map(partOf)] };
  }

  /**
   * Return the messages of exchanges as one of the models has seen them.
   * @param {Exchange[]} exchanges
   * @param {number} column
   */
  _history(exchanges, column) {
    return exchanges.flatMap(({ user, replies }) => [user, ...((replies[column] ?? replies[0])?.messages ?? [])]);
  }

  /**
   * @param {string} model
   * @param {Message[]} messages
   * @returns {Record<string, unknown>}
   */
  _request(model, messages) {
    const system = this._system.value.trim();
    const { tools, outputModalities = [] } = this._shell.listed(model)?.capabilities ?? { tools: true };
    return this._form.addTo(without({
      model, messages,
      instructions: system ? [{ text: { text: system } }] : [],
      tools: tools ? this._tools.declarations() : [],
      outputModalities: outputModalities.includes("image") ? ["text", "image"] : [], // unset is text alone
    }));
  }

  _submit() {
    const user = this._userMessage();
    if (!user.parts?.length || this._isRunning() || !this._shell.ready()) return;
    if (this._edited) this._truncate(this._exchanges.indexOf(this._edited));
    this._leaveEditing();
    this._message.value = "";
    this._files.set([]);
    this._begin(user);
  }

  /** @param {Message} user */
  _begin(user) {
    const before = [...this._exchanges];
    const exchange = /** @type {Exchange} */ ({ user, element: element("div", { class: "exchange" }), replies: [] });
    exchange.replies = this._shell.modelIds().map((model, column) => this._reply(model, column, exchange, before));
    this._show(exchange);
    for (const reply of exchange.replies) reply.run();
    this._update();
    this._scrollToEnd();
  }

  /**
   * @param {string} model
   * @param {number} column
   * @param {Exchange} exchange
   * @param {Exchange[]} before
   */
  _reply(model, column, exchange, before) {
    return new Reply(model, {
      request: (name, more) => { queueMicrotask(() => this._update()); return this._request(name, [...this._history(before, column), exchange.user, ...more]); },
      follow: (draw) => this._follow(draw),
      ended: () => this._ended(),
      regenerate: () => { if (!this._isRunning() && this._shell.ready()) { this._truncate(this._exchanges.indexOf(exchange)); this._begin(exchange.user); } },
    });
  }

  /** @param {Exchange} exchange */
  _show(exchange) {
    const edit = element("button", { type: "button", class: "quiet" }, text("action.edit"));
    edit.addEventListener("click", () => this._edit(exchange));
    const parts = (exchange.user.parts ?? []).map((part) => (part.media ? mediaView(part.media) : element("p", { class: "plain" }, part.text?.text ?? "")));
    const user = element("article", { class: "user", "aria-label": text("chat.you") }, ...parts, element("div", { class: "actions" }, edit));
    const columns = element("div", { class: exchange.replies.length > 1 ? "columns" : undefined }, ...exchange.replies.map((reply) => reply.element));
    exchange.element.append(user, ...(exchange.replies.length > 1 ? [tabsOf(exchange.replies, columns)] : []), columns);
    this._exchanges.push(exchange);
    this._log.append(exchange.element);
  }

  /** @param {Exchange} exchange */
  _edit(exchange) {
    if (this._isRunning()) return;
    if (!this._edited) this._draft = this._message.value;
    this._edited = exchange;
    this._message.value = textOf([exchange.user]);
    this._files.set((exchange.user.parts ?? []).flatMap(({ media }) => (media?.data ? [{ name: media.filename ?? "", mimeType: media.mimeType ?? "", data: media.data }] : [])));
    const cancel = element("button", { type: "button", class: "quiet" }, text("action.edit_cancel"));
    cancel.addEventListener("click", () => { this._leaveEditing(); this._message.value = this._draft; this._files.set([]); });
    this._editing.replaceChildren(text("chat.editing"), " ", cancel);
    this._message.focus();
  }

  _leaveEditing() {
    this._edited = null;
    this._editing.replaceChildren();
  }

  /** @param {number} from index of the first exchange that is removed */
  _truncate(from) {
    for (const exchange of this._exchanges.splice(from)) exchange.element.remove();
  }

  _isRunning() {
    return this._exchanges.some(({ replies }) => replies.some((reply) => reply.isRunning));
  }

  /**
   * Draw a part of a response, and keep its end in view if it was there before: who reads an earlier part stays at it.
   * @param {() => void} draw
   */
  _follow(draw) {
    const isSeen = this._hiddenPixels() <= FOLLOW_PIXELS;
    draw();
    if (isSeen) this._scrollToEnd();
  }

  /** Return how much of the log is below the window or the form of the message. */
  _hiddenPixels() {
    return this._log.getBoundingClientRect().bottom - Math.min(innerHeight, this._composer.getBoundingClientRect().top);
  }

  _scrollToEnd() {
    scrollBy(0, Math.max(0, this._hiddenPixels()));
  }

  /** Screen readers announce the responses when they are complete: word by word they would interrupt themselves. */
  _update() {
    const isRunning = this._isRunning();
    this._log.setAttribute("aria-busy", String(isRunning));
    this._send.disabled = isRunning;
    this._stop.disabled = !isRunning;
    this._empty.hidden = this._exchanges.length > 0;
    this._shell.changed();
  }

  _ended() {
    this._update();
    if (!this._isRunning()) this._shell.remember(textOf(this._exchanges.slice(0, 1).map(({ user }) => user)), this._saved());
  }

  /** @returns {SavedChat} */
  _saved() {
    return {
      system: this._system.value, settings: this._form.values, tools: this._tools.tools,
      exchanges: this._exchanges.map(({ user, replies }) => ({ user, replies: replies.map((reply) => reply.saved) })),
    };
  }

  /** @param {SavedChat} saved */
  restore({ system, settings, tools, exchanges }) {
    this._system.value = system;
    this._systemView.open = system !== "";
    this._form.restore(settings);
    this._tools.set(tools);
    for (const { user, replies } of exchanges) {
      const before = [...this._exchanges];
      const exchange = /** @type {Exchange} */ ({ user, element: element("div", { class: "exchange" }), replies: [] });
      exchange.replies = replies.map((reply, column) => this._reply(reply.model, column, exchange, before));
      exchange.replies.forEach((reply, column) => reply.restore(replies[column] ?? reply.saved));
      this._show(exchange);
    }
    this._update();
  }
}

/**
 * Return the buttons that choose the reply which a narrow window shows; a wide one shows both.
 * @param {Reply[]} replies
 * @param {HTMLElement} columns
 */
function tabsOf(replies, columns) {
  const buttons = replies.map(({ model }) => element("button", { type: "button", class: "quiet" }, visible(model)));
  /** @param {number} chosen */
  const show = (chosen) => {
    columns.dataset["shown"] = String(chosen);
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === chosen)));
  };
  buttons.forEach((button, place) => button.addEventListener("click", () => show(place)));
  show(0);
  return element("div", { class: "tabs row", role: "group", "aria-label": text("chat.responses") }, ...buttons);
}
