// Picker of a model: a field for any id, with a list of the models that fit, by pointer and by keyboard.

import { element } from "../elements.js";
import { visible } from "../quoting.js";
import { text } from "./strings.js";

/** @typedef {import("./contract.js").Model} Model */

let count = 0;

export class ModelPicker {
  /**
   * @param {string} label
   * @param {(id: string) => void} changed
   */
  constructor(label, changed) {
    const id = `model-${++count}`;
    this._models = /** @type {Model[]} */ ([]);
    this._shown = /** @type {Model[]} */ ([]);
    this._active = -1;
    this._changed = changed;
    this.input = element("input", {
      id, type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: text("model.placeholder"),
      "aria-expanded": "false", "aria-controls": `${id}-list`, "aria-autocomplete": "list", "aria-describedby": `${id}-note`,
    });
    this._list = element("ul", { id: `${id}-list`, role: "listbox", "aria-label": label, hidden: true });
    this._note = element("p", { id: `${id}-note`, class: "faint", role: "status" });
    this.element = element("div", { class: "picker" }, element("label", { for: id }, label), element("div", { class: "combo" }, this.input, this._list), this._note);
    this.input.addEventListener("focus", () => this.input.select());
    this.input.addEventListener("click", () => this._open(""));
    this.input.addEventListener("input", () => { this._open(this.input.value); this._changed(this.id); });
    this.input.addEventListener("blur", () => this._close());
    this.input.addEventListener("keydown", (event) => this._key(event));
    this._list.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the field keeps the focus
      const option = /** @type {HTMLElement} */ (event.target).closest("[role=option]");
      const chosen = option && this._shown[[...this._list.children].indexOf(option)];
      if (chosen) this._choose(chosen);
    });
  }

  get id() {
    return this.input.value.trim();
  }

  /**
   * Offer models, and choose one of them if none is chosen yet.
   * @param {Model[]} models
   * @param {string} [preferred]
   */
  offer(models, preferred) {
    this._models = models;
    const chosen = models.find((model) => model.id === preferred) ?? models[0];
    if (preferred !== undefined) this.input.value = preferred || (chosen?.id ?? "");
    this._describe();
  }

  /** Describe the chosen model below the field. */
  _describe() {
    const model = this._models.find(({ id }) => id === this.id);
    if (!model) this._note.textContent = this.id && this._models.length ? text("models.free", { id: visible(this.id) }) : "";
    else this._note.textContent = model.prices?.length ? "" : text("model.unpriced.note");
  }

  /** @param {string} wanted */
  _open(wanted) {
    const words = wanted.toLowerCase().split(/\s+/);
    this._shown = this._models.filter(({ id, displayName = "" }) => words.every((word) => `${id} ${displayName}`.toLowerCase().includes(word)));
    this._list.replaceChildren(...this._shown.map((model, place) => this._option(model, place)));
    this._list.hidden = !this._shown.length;
    this.input.setAttribute("aria-expanded", String(!this._list.hidden));
    this._activate(wanted ? -1 : this._shown.findIndex(({ id }) => id === this.id));
    if (wanted) this._describe();
  }

  /**
   * @param {Model} model
   * @param {number} place
   */
  _option(model, place) {
    const name = model.displayName && model.displayName !== model.id ? element("span", { class: "faint" }, visible(model.displayName)) : undefined;
    const unpriced = model.prices?.length ? undefined : element("span", { class: "badge warn" }, `▲ ${text("model.unpriced")}`);
    return element("li", { role: "option", id: `${this._list.id}-${place}`, "aria-selected": String(model.id === this.id) }, element("code", {}, visible(model.id)), " ", name, " ", unpriced);
  }

  _close() {
    this._list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
    this._describe();
  }

  /** @param {number} place */
  _activate(place) {
    this._active = place;
    const options = [...this._list.children];
    options.forEach((option, at) => option.classList.toggle("active", at === place));
    const active = options[place];
    if (active) this.input.setAttribute("aria-activedescendant", active.id);
    else this.input.removeAttribute("aria-activedescendant");
    active?.scrollIntoView({ block: "nearest" });
  }

  /** @param {Model} model */
  _choose(model) {
    this.input.value = model.id;
    this._close();
    this._changed(model.id);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const isOpen = !this._list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) this._open("");
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (isOpen) this._activate((this._active + step + this._shown.length) % this._shown.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const chosen = isOpen ? this._shown[this._active] : undefined;
      if (chosen) this._choose(chosen);
      else this._close();
    } else if (event.key === "Escape" && isOpen) {
      event.stopPropagation();
      this._close();
    }
  }
}
