// Embed: vectors of texts, and how near they are to a chosen one.

import { element } from "../elements.js";
import { CallView } from "./call-view.js";
import { bytesOf } from "./connect.js";
import { EMBED } from "./contract.js";
import { grouped } from "./numbers.js";
import { text } from "./strings.js";

/** @typedef {import("./fields.js").Field} Field */

const SHOWN_VALUES = 4;

export class EmbedView extends CallView {
  /** @param {import("./shell.js").Shell} shell */
  constructor(shell) {
    super(shell, text("embed.send"));
    this._lines = element("textarea", { rows: "6", id: "prompt" });
    this.inputs.append(this.field(text("embed.lines"), this._lines));
  }

  modelChanged() {
    const model = this.shell.model();
    const { defaultDimensions, dimensions = [], anyDimensions = false, taskTypes = [] } = model?.embedding ?? { anyDimensions: true };
    const placeholder = defaultDimensions ? { placeholder: text("settings.default", { value: defaultDimensions }) } : {};
    const rows = /** @type {Field[]} */ ([]);
    if (anyDimensions) rows.push({ path: "dimensions", label: text("embed.dimensions"), type: "integer", min: 1, ...(defaultDimensions ? { max: defaultDimensions } : {}), ...placeholder });
    else if (dimensions.length) rows.push({ path: "dimensions", label: text("embed.dimensions"), type: "choice", values: dimensions.map(String), isNumber: true, ...placeholder });
    if (taskTypes.length || !model) rows.push({ path: "taskType", label: text("embed.task"), type: taskTypes.length ? "choice" : "text", values: taskTypes });
    this.form.show(rows);
  }

  _texts() {
    return this._lines.value.split("\n").filter((line) => line.trim());
  }

  /** @override */
  call() {
    const inputs = this._texts().map((line) => ({ text: line }));
    if (!inputs.length) return null;
    return { method: EMBED, message: this.form.addTo({ model: this.shell.modelIds()[0] ?? "", inputs }) };
  }

  /**
   * @override
   * @param {{embeddings?: {values: string}[]}} response
   * @param {import("./connect.js").Head} _head
   * @param {import("./contract.js").Call} call
   */
  show({ embeddings = [] }, _head, { message }) {
    const texts = /** @type {{text: string}[]} */ (message["inputs"]).map((input) => input.text);
    const vectors = embeddings.map(({ values }) => new Float32Array(bytesOf(values).buffer));
    const cosines = vectors.map(() => element("td", { class: "number" }));
    /** @param {number} base */
    const compare = (base) => cosines.forEach((cell, place) => { cell.textContent = cosine(vectors[base], vectors[place]).toFixed(4); });
    const rows = vectors.map((vector, place) => {
      const choice = element("input", { type: "radio", name: "base", "aria-label": text("embed.choose", { number: place + 1 }), checked: place === 0 });
      choice.addEventListener("change", () => compare(place));
      const first = [...vector.slice(0, SHOWN_VALUES)].map((value) => value.toFixed(4)).join(", ");
      return element("tr", {}, element("td", {}, choice), element("td", {}, texts[place]), element("td", { class: "number" }, grouped(vector.length)), element("td", {}, first), cosines[place]);
    });
    const columns = /** @type {const} */ (["base", "text", "length", "values", "cosine"]);
    const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, text(`embed.column.${name}`))));
    const table = element("table", {}, element("caption", {}, text("embed.caption")), element("thead", {}, head), element("tbody", {}, ...rows));
    this.result.append(element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": text("embed.caption") }, table));
    compare(0);
    this.shell.remember(texts[0] ?? "", { lines: this._lines.value });
  }

  /** @param {{lines: string}} saved */
  restore(saved) {
    this._lines.value = saved.lines;
  }
}

/**
 * Return the cosine of the angle between two vectors; 0 where one is missing or has no length.
 * @param {Float32Array | undefined} one
 * @param {Float32Array | undefined} other
 */
function cosine(one = new Float32Array(), other = new Float32Array()) {
  let [product, first, second] = [0, 0, 0];
  one.forEach((value, place) => {
    const against = other[place] ?? 0;
    product += value * against;
    first += value * value;
    second += against * against;
  });
  return product / (Math.sqrt(first * second) || 1);
}
