// Fields of a form that follow the model: a row describes a field, a form has those that the model has.

import { element } from "../elements.js";
import { text } from "./strings.js";

/**
 * Row of a field. `path`: place of its value in the request, with dots between members.
 * @typedef {object} Field
 * @property {string} path
 * @property {string} label
 * @property {"integer" | "number" | "text" | "lines" | "json" | "choice" | "switch"} type
 * @property {number} [min]
 * @property {number} [max]
 * @property {string[]} [values] choices, in the request's spelling
 * @property {boolean} [isNumber] whether the choices are numbers
 * @property {string} [prefix] beginning of the choices that is not shown, of the values of an enum
 * @property {string} [placeholder]
 * @property {string} [note]
 * @property {boolean} [isRare] whether the field is folded, since few calls set it
 */

/** @typedef {Record<string, string>} Values path of a field -> what its input has */

let count = 0;

/** Form of the fields that a model has. What was entered stays where another model has the field, too. */
export class FieldsForm {
  /** @param {() => void} changed */
  constructor(changed) {
    this.element = element("div", { class: "fields" });
    this.values = /** @type {Values} */ ({});
    this._rows = /** @type {Field[]} */ ([]);
    this._changed = changed;
  }

  /** @param {Field[]} rows */
  show(rows) {
    this._rows = rows;
    const [usual, rare] = [rows.filter(({ isRare }) => !isRare), rows.filter(({ isRare }) => isRare)];
    this.element.replaceChildren(...(rows.length ? usual.map((row) => this._field(row)) : [element("p", { class: "faint" }, text("settings.none"))]));
    if (!rare.length) return;
    const isOpen = rare.some(({ path }) => this.values[path]);
    this.element.append(element("details", { open: isOpen }, element("summary", {}, text("settings.more")), ...rare.map((row) => this._field(row))));
  }

  /**
   * Set the values, for example those of a conversation of the history.
   * @param {Values} values
   */
  restore(values) {
    this.values = { ...values };
    this.show(this._rows);
  }

  /**
   * Return a request with the values in their places. Values that do not fit their field are left out.
   * @param {Record<string, unknown>} request
   */
  addTo(request) {
    for (const row of this._rows) {
      const value = parsed(row, this.values[row.path] ?? "");
      if (value !== undefined) assign(request, row.path.split("."), value);
    }
    return request;
  }

  /** @param {Field} row */
  _field(row) {
    const id = `field-${++count}`;
    const given = this.values[row.path] ?? "";
    const error = element("p", { class: "bad", id: `${id}-error`, role: "alert" });
    const input = inputOf(row, id, given);
    input.addEventListener("input", () => {
      this.values[row.path] = input.value;
      const wrong = input.value.trim() !== "" && parsed(row, input.value) === undefined;
      error.textContent = wrong ? text("settings.invalid", { field: row.label }) : "";
      input.setAttribute("aria-invalid", String(wrong));
      this._changed();
    });
    const note = row.note ? element("p", { class: "faint" }, row.note) : undefined;
    return element("div", { class: "field" }, element("label", { for: id }, row.label), input, note, error);
  }
}

/**
 * @param {Field} row
 * @param {string} id
 * @param {string} given
 * @returns {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement}
 */
function inputOf(row, id, given) {
  const attributes = { id, "aria-describedby": `${id}-error`, placeholder: row.placeholder ?? text("settings.unset") };
  if (row.type === "choice" || row.type === "switch") {
    const choices = row.type === "choice" ? (row.values ?? []).map((value) => [value, row.prefix ? value.slice(row.prefix.length).toLowerCase() : value]) : [["true", text("field.on")], ["false", text("field.off")]];
    const unset = element("option", { value: "" }, row.placeholder ?? text("settings.unset"));
    const select = element("select", { id, "aria-describedby": `${id}-error` }, unset, ...choices.map(([value = "", label = ""]) => element("option", { value }, label)));
    select.value = given;
    if (select.selectedIndex < 0) select.value = ""; // a value of the model before this one
    return select;
  }
  if (row.type === "lines" || row.type === "json") {
    const area = element("textarea", { ...attributes, rows: "2", spellcheck: "false", class: row.type === "json" ? "code" : undefined });
    area.value = given;
    return area;
  }
  const mode = row.type === "integer" ? "numeric" : row.type === "number" ? "decimal" : "text";
  const input = element("input", { ...attributes, type: "text", inputmode: mode, autocomplete: "off" });
  input.value = given;
  return input;
}

/**
 * Return the value of a request that a text means; undefined for none, or one that does not fit the field.
 * @param {Field} row
 * @param {string} given
 * @returns {unknown}
 */
function parsed(row, given) {
  const trimmed = given.trim();
  if (trimmed === "") return undefined;
  switch (row.type) {
    case "integer":
    case "number": {
      const number = Number(trimmed);
      const fits = Number.isFinite(number) && (row.type === "number" || Number.isInteger(number));
      return fits && number >= (row.min ?? -Infinity) && number <= (row.max ?? Infinity) ? number : undefined;
    }
    case "switch":
      return trimmed === "true";
    case "choice":
      if (!row.values?.includes(trimmed)) return undefined; // of the model before this one
      return row.isNumber ? Number(trimmed) : trimmed;
    case "lines":
      return given.split("\n").filter((line) => line !== "");
    case "json":
      return isJsonObject(trimmed) ? trimmed : undefined;
    default:
      return trimmed;
  }
}

/** @param {string} given */
export function isJsonObject(given) {
  try {
    const read = JSON.parse(given);
    return typeof read === "object" && read !== null && !Array.isArray(read);
  } catch {
    return false;
  }
}

/**
 * @param {Record<string, any>} request
 * @param {string[]} path
 * @param {unknown} value
 */
function assign(request, path, value) {
  const [name = "", ...rest] = path;
  if (!rest.length) request[name] = value;
  else assign((request[name] ??= {}), rest, value);
}
