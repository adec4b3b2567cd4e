// Shell of the playground: kind, key, models, and the parts around the view of the kind that is shown.

import { byId, element } from "../elements.js";
import { isKept, key, setKey } from "../gateway.js";
import { visible } from "../quoting.js";
import { CodePanel } from "./code-panel.js";
import { unary } from "./connect.js";
import { GET_USAGE, LIST_MODELS } from "./contract.js";
import { failureView } from "./failures.js";
import { showHelp } from "./help.js";
import { HistoryPanel } from "./history-panel.js";
import { KINDS, kindNamed } from "./kinds.js";
import { ModelPicker } from "./model-picker.js";
import { credits, grouped } from "./numbers.js";
import { forgetSessionKey, projectField, resumeSessionKey, sessionChoices, useSessionKey } from "./session-key.js";
import { text } from "./strings.js";

/** Width from which the parts beside the view are open at first. */
const WIDE = "(min-width: 48rem)";

/** @typedef {import("./contract.js").Model} Model */
/** @typedef {import("./kinds.js").KindName} KindName */
/** @typedef {import("./kinds.js").View} View */

export class Shell {
  constructor() {
    writeTexts();
    this._models = /** @type {Model[]} */ ([]);
    this._kind = kindNamed(new URLSearchParams(location.search).get("kind"));
    this._view = /** @type {View | null} */ (null);
    this._left = /** @type {Map<KindName, {view: View, entry: string}>} */ (new Map()); // what was typed there stays
    this._chosen = /** @type {Map<KindName, string>} */ (new Map());
    this._shown = this._kind;
    this._session = /** @type {import("./session-key.js").Choices | null} */ (null);
    this._frame = 0;
    this._notice = byId("notice");
    this._code = new CodePanel(byId("code"));
    this._history = new HistoryPanel(byId("history"), (kind, saved) => this.open(kind, (view) => view.restore(saved), true));
    this._picker = new ModelPicker(text("model.label"), () => this._modelChanged());
    this._other = new ModelPicker(text("model.other_label"), () => this.changed());
    this._compare = element("button", { type: "button", class: "quiet", id: "compare" }, text("model.compare"));
    this._compare.addEventListener("click", () => this._setComparing(!!this._other.element.hidden));
    byId("models").append(this._picker.element, this._other.element, this._compare);
    this._other.element.hidden = true;
  }

  /** Show the page of its address, and the models of a key that is kept. */
  async start() {
    this._drawKinds();
    this._listen();
    byId("key").value = key();
    byId("remember").checked = isKept();
    this._showOnline();
    this._showHealth();
    resumeSessionKey();
    if (key()) await this._readModels();
    else await this._showNoKeyOrSession();
    await this.open(this._kind);
    document.documentElement.dataset["ready"] = "true";
  }

  // --- what the views use

  /** Return the chosen model, if it is a listed one. */
  model() {
    return this.listed(this._picker.id);
  }

  /** @param {string} wanted id of a model */
  listed(wanted) {
    return this._models.find(({ id }) => id === wanted);
  }

  /** Return the ids of the models that are called: one, or two that are compared. */
  modelIds() {
    const ids = [this._picker.id, ...(this._other.element.hidden ? [] : [this._other.id])];
    return ids.filter(Boolean);
  }

  /** Return whether a call can be made; else say what it lacks. */
  ready() {
    if (!key()) this._showNoKey();
    else if (!this.modelIds().length) this._notice.replaceChildren(element("p", { class: "bad", role: "alert" }, text("model.missing")));
    else return true;
    return false;
  }

  /** Draw the code of the present call with the next frame. */
  changed() {
    this._frame ||= requestAnimationFrame(() => {
      this._frame = 0;
      this._code.show(this.modelIds().length ? this._view?.call() ?? null : null);
    });
  }

  /**
   * Keep the present conversation or result in the history.
   * @param {string} title
   * @param {object} saved what `View.restore` is given
   */
  remember(title, saved) {
    this._history.remember({ kind: this._kind, title, model: this._picker.id, saved });
  }

  /**
   * Show the view of a kind as it was left, or a new one. `then` is called with it, for example to hand it a picture.
   * @param {KindName} kind
   * @param {(view: View) => void} [then]
   * @param {boolean} [isNew]
   */
  async open(kind, then, isNew = false) {
    this._view?.stop();
    this._view?.close?.();
    if (this._view) this._left.set(this._shown, { view: this._view, entry: this._history.entry });
    this._kind = kind;
    const kindView = await KINDS[kind].load();
    if (this._kind !== kind) return; // another kind was chosen meanwhile
    const left = isNew ? undefined : this._left.get(kind);
    const made = left?.view ?? new kindView(this);
    this._view = made;
    this._shown = kind;
    byId("view").replaceChildren(made.element);
    byId("settings").replaceChildren(made.settings);
    this._drawKinds();
    this._offer();
    this._history.begin(left?.entry);
    then?.(made);
    this.changed();
  }

  // --- key and models

  _listen() {
    byId("key-form").addEventListener("submit", (/** @type {Event} */ event) => { event.preventDefault(); this._useKey(); });
    byId("session-form").addEventListener("submit", (/** @type {Event} */ event) => { event.preventDefault(); this._useSession(); });
    byId("remember").addEventListener("change", () => setKey(byId("key").value, byId("remember").checked));
    byId("key-change").addEventListener("click", async () => { await this._readSession(); this._showKeyForm(true); });
    addEventListener("focus", () => { if (!byId("key-form").hidden && !this._session) this._readSession(); }); // after a sign-in in another tab
    byId("new").addEventListener("click", () => { this.open(this._kind, undefined, true); });
    byId("help-open").addEventListener("click", showHelp);
    for (const name of ["online", "offline"]) addEventListener(name, () => this._showOnline());
    addEventListener("keydown", (event) => this._key(event));
  }

  async _useKey() {
    forgetSessionKey();
    setKey(byId("key").value, byId("remember").checked);
    await this._readModels();
    this._offer();
  }

  /** Say that there is no key, and offer to start without one if a person is signed in. */
  async _showNoKeyOrSession() {
    await this._readSession();
    this._showNoKey();
  }

  /** Offer to start without a key if a person is signed in; a chosen project stays. */
  async _readSession() {
    const chosen = byId("session-project").value;
    this._session = await sessionChoices().catch(() => null);
    if (this._session) {
      byId("session-name").textContent = text("session.name", { name: visible(this._session.name) });
      const field = projectField(this._session);
      byId("session-project").replaceWith(field);
      if (chosen) field.value = chosen;
      if (!field.value && field instanceof HTMLSelectElement) field.selectedIndex = 0; // the project is not offered any more
    }
    byId("session-form").hidden = byId("key-form").hidden || !this._session;
    byId("console-link").hidden = !this._session;
  }

  async _useSession() {
    try {
      await useSessionKey(byId("session-project").value, byId("session-remember").checked);
    } catch (error) {
      this._notice.replaceChildren(failureView(error, () => this._useSession()));
      return;
    }
    await this._readModels();
    this._offer();
  }

  async _readModels() {
    const state = byId("key-state");
    this._notice.replaceChildren();
    state.textContent = text("key.reading");
    try {
      const { response } = await unary(LIST_MODELS, {});
      this._models = response.models ?? [];
    } catch (error) {
      this._models = [];
      state.textContent = "";
      this._showKeyForm(true);
      this._notice.replaceChildren(failureView(error, () => this._readModels().then(() => this._offer())));
      return;
    }
    this._showKeyForm(false);
    const unpriced = this._models.filter(({ prices }) => !prices?.length).length;
    const counts = [text("models.count", { count: grouped(this._models.length) }), ...(unpriced ? [text("models.unpriced", { count: unpriced })] : [])];
    state.textContent = counts.join(", ");
    if (!this._models.length) this._notice.replaceChildren(element("p", {}, text("models.empty")));
    await this._showKey();
  }

  /** Show the name and the budget of the key, and to administrators the lists of models that could not be read. */
  async _showKey() {
    const used = key();
    const problems = byId("list-problems");
    problems.replaceChildren();
    problems.setAttribute("aria-busy", "true");
    try {
      const { key: own } = (await unary(GET_USAGE, {})).response;
      const { name = "", budgetMicroCredits: budget, administrator } = own.settings ?? {};
      if (key() !== used) return;
      byId("key-name").textContent = text("key.in_use", { name: visible(name) });
      byId("key-budget").textContent = budget === undefined ? "" : text("key.budget", { spent: credits(own.spentMicroCredits), budget: credits(budget) });
      if (!administrator) return;
      const { modelLists = [] } = (await unary("AdminService/ListChannels", {})).response;
      if (key() === used) problems.replaceChildren(...modelLists.filter((/** @type {{problem?: string}} */ { problem }) => problem).map(listProblem));
    } catch {
      // the models are of use without it
    } finally {
      problems.setAttribute("aria-busy", "false");
    }
  }

  /** @param {boolean} shown */
  _showKeyForm(shown) {
    byId("key-form").hidden = !shown;
    byId("session-form").hidden = !shown || !this._session;
    byId("key-used").hidden = shown;
    if (shown) byId("key").focus();
  }

  _showNoKey() {
    this._showKeyForm(true);
    this._notice.replaceChildren(element(
      "section", { class: "empty", "aria-label": text("key.none") },
      element("h2", {}, text("key.none")),
      element("p", {}, text("key.none.how")), element("pre", { tabindex: "0" }, element("code", {}, "umg keys create NAME")),
      element("p", { class: "faint" }, text(this._session ? "session.how" : "key.none.ask")),
    ));
  }

  /** Offer the models that have the operation of the kind. */
  _offer() {
    const { operation, compares } = KINDS[this._kind];
    const able = this._models.filter(({ operations = [] }) => operations.includes(operation));
    const wanted = new URLSearchParams(location.search).get("model") ?? "";
    const isOther = this._models.some(({ id }) => id === this._picker.id) && !able.some(({ id }) => id === this._picker.id);
    this._picker.offer(able, isOther ? this._chosen.get(this._kind) ?? "" : this._picker.id || wanted);
    this._other.offer(able);
    this._compare.hidden = !compares;
    if (!compares) this._setComparing(false);
    byId("no-models").textContent = this._models.length && !able.length ? text("models.none") : "";
    this._modelChanged();
  }

  _modelChanged() {
    if (key() && this._picker.id) this._notice.querySelector("[role=alert]:not(.failure)")?.remove();
    this._chosen.set(this._kind, this._picker.id);
    this._view?.modelChanged();
    this.changed();
  }

  /** @param {boolean} isComparing */
  _setComparing(isComparing) {
    this._other.element.hidden = !isComparing;
    this._compare.textContent = text(isComparing ? "model.compare.end" : "model.compare");
    this._compare.setAttribute("aria-expanded", String(isComparing));
    if (isComparing) this._other.input.focus();
    this.changed();
  }

  // --- page

  _drawKinds() {
    byId("kinds").replaceChildren(.../** @type {KindName[]} */ (Object.keys(KINDS)).map((kind) => {
      const link = element("a", { href: `?kind=${kind}`, "aria-current": kind === this._kind ? "page" : undefined }, text(`kind.${kind}`));
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        history.replaceState(null, "", `?kind=${kind}`);
        this.open(kind);
      });
      return link;
    }));
  }

  async _showHealth() {
    const shown = byId("health");
    try {
      const response = await fetch("/readyz");
      const { status, reasons = [] } = await response.json();
      shown.textContent = text("health", { state: [status, ...reasons].join(": ") });
      shown.className = response.ok ? "good" : "bad";
    } catch {
      shown.textContent = text("health", { state: text("health.unreachable") });
      shown.className = "bad";
    }
  }

  _showOnline() {
    byId("offline").textContent = navigator.onLine ? "" : text("state.offline");
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const isWriting = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    if (event.key === "Escape") this._view?.stop();
    else if (event.key === "?" && !isWriting) showHelp();
    else if (event.ctrlKey && !event.shiftKey && event.key.toLowerCase() === "k") this._picker.input.focus();
    else if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "l") this._code.focus();
    else return;
    if (event.key !== "Escape") event.preventDefault();
  }
}

/** Write the texts of the page, which are in one module with all others. */
function writeTexts() {
  for (const each of document.querySelectorAll("[data-text], [data-label]")) {
    const { text: content, label } = /** @type {HTMLElement} */ (each).dataset;
    if (content) each.textContent = text(/** @type {keyof typeof import("./strings.js").TEXTS} */ (content));
    if (label) each.setAttribute("aria-label", text(/** @type {keyof typeof import("./strings.js").TEXTS} */ (label)));
  }
  for (const each of document.querySelectorAll("details.folds")) /** @type {HTMLDetailsElement} */ (each).open = matchMedia(WIDE).matches;
}

/** @param {{channel: string, problem: string, failureTime: string}} list */
function listProblem({ channel, problem, failureTime }) {
  const time = new Date(failureTime).toLocaleString();
  return element("li", {}, text("models.list_problem", { channel: visible(channel), time, problem: visible(problem) }));
}
