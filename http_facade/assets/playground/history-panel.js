// List of the conversations and results that the browser keeps.

import { byId, element } from "../elements.js";
import { visible } from "../quoting.js";
import { HistoryStore } from "./history-store.js";
import { text } from "./strings.js";

/** @typedef {import("./history-store.js").Entry} Entry */

const TITLE_CHARACTERS = 60;
const FILE_MEMBERS = new Set(["data", "images"]); // of the contract's messages and of results

export class HistoryPanel {
  /**
   * @param {HTMLElement} place
   * @param {(kind: import("./kinds.js").KindName, saved: any) => Promise<void>} open
   */
  constructor(place, open) {
    this._store = new HistoryStore();
    this._open = open;
    this._id = "";
    this._list = element("div", { class: "entries" });
    this._problem = element("p", { class: "bad", role: "status" });
    this._files = element("input", { type: "checkbox" });
    this._export = element("button", { type: "button", class: "quiet" }, text("history.export"));
    this._delete = element("button", { type: "button", class: "quiet" }, text("history.delete"));
    this._export.addEventListener("click", () => this._exportAll());
    this._delete.addEventListener("click", () => this._deleteAll());
    this._delete.addEventListener("blur", () => { this._delete.textContent = text("history.delete"); });
    place.append(
      this._list, this._problem,
      element("p", { class: "faint" }, text("history.note")),
      element("label", { class: "inline" }, this._files, text("history.files")),
      element("div", { class: "row" }, this._export, this._delete),
    );
    this._draw();
  }

  /** Return the id of the entry that is replaced by what is remembered next. */
  get entry() {
    return this._id;
  }

  /**
   * Go on with an entry; without one, begin a new one: what is remembered next does not replace the last one.
   * @param {string} [entry]
   */
  begin(entry) {
    this._id = entry ?? crypto.randomUUID?.() ?? String(Date.now() + Math.random()); // the former needs TLS or a loopback host
    this._mark();
  }

  /**
   * Keep the present conversation or result.
   * @param {{kind: import("./kinds.js").KindName, title: string, model: string, saved: any}} given
   */
  async remember({ kind, title, model, saved }) {
    const kept = this._files.checked ? saved : JSON.parse(JSON.stringify(saved, withoutFile));
    const shortened = title.replace(/\s+/g, " ").slice(0, TITLE_CHARACTERS);
    await this._attempt(() => this._store.put({ id: this._id, kind, title: shortened, model, time: Date.now(), saved: kept }));
    await this._draw();
  }

  /** @param {() => Promise<void>} act */
  async _attempt(act) {
    try {
      await act();
      this._problem.textContent = "";
    } catch (error) {
      this._problem.textContent = text("history.off", { problem: error instanceof Error || error instanceof DOMException ? error.message : String(error) });
    }
  }

  async _draw() {
    await this._attempt(async () => {
      const entries = await this._store.entries();
      const midnight = new Date().setHours(0, 0, 0, 0);
      const groups = /** @type {[string, Entry[]][]} */ ([
        [text("history.today"), entries.filter(({ time }) => time >= midnight)],
        [text("history.older"), entries.filter(({ time }) => time < midnight)],
      ]);
      const shown = groups.filter(([, found]) => found.length).flatMap(([title, found]) => [
        element("h3", {}, title), element("ul", {}, ...found.map((entry) => element("li", {}, this._button(entry)))),
      ]);
      this._list.replaceChildren(...(shown.length ? shown : [element("p", { class: "faint" }, text("history.empty"))]));
      this._mark();
    });
  }

  /** @param {Entry} entry */
  _button(entry) {
    const title = entry.title ? visible(entry.title) : text("history.untitled");
    const button = element("button", { type: "button", class: "entry", "data-id": entry.id }, title, element("span", { class: "faint" }, ` ${text(`kind.${entry.kind}`)}, ${visible(entry.model)}`));
    button.addEventListener("click", async () => {
      byId("models").querySelector("input").value = entry.model;
      await this._open(entry.kind, entry.saved);
      this._id = entry.id;
      this._mark();
    });
    return button;
  }

  _mark() {
    for (const button of this._list.querySelectorAll("button")) button.setAttribute("aria-current", String(button.dataset["id"] === this._id));
  }

  async _exportAll() {
    const url = URL.createObjectURL(new Blob([JSON.stringify(await this._store.entries(), null, 1)], { type: "application/json" }));
    element("a", { href: url, download: "umg-playground.json" }).click();
    URL.revokeObjectURL(url);
  }

  /** Delete all entries at the second press: what is deleted cannot be restored. */
  async _deleteAll() {
    const count = (await this._store.entries()).length;
    const sure = text("history.delete.sure", { count });
    if (this._delete.textContent !== sure) {
      this._delete.textContent = sure;
      return;
    }
    await this._attempt(() => this._store.clear());
    this._delete.textContent = text("history.delete");
    await this._draw();
  }
}

/**
 * @param {string} name
 * @param {any} value
 */
function withoutFile(name, value) {
  if (value?.media?.data) return { text: { text: text("history.file_left_out", { name: value.media.filename ?? "" }) } };
  return FILE_MEMBERS.has(name) ? undefined : value;
}
