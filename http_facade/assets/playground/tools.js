// Tools of a conversation: their declarations, and the fields for the results of the model's calls.

import { element } from "../elements.js";
import { visible } from "../quoting.js";
import { isJsonObject } from "./fields.js";
import { text } from "./strings.js";

/** @typedef {{name: string, description: string, schema: string}} Tool */
/** @typedef {import("./contract.js").ToolCall} ToolCall */
/** @typedef {import("./contract.js").Part} Part */

const EXAMPLE_SCHEMA = '{"type": "object", "properties": {"city": {"type": "string"}}}';

export class ToolsEditor {
  /** @param {() => void} changed */
  constructor(changed) {
    this.tools = /** @type {Tool[]} */ ([]);
    this._changed = changed;
    this._title = element("summary");
    this._list = element("div");
    const add = element("button", { type: "button", class: "quiet" }, text("tools.add"));
    add.addEventListener("click", () => {
      this.set([...this.tools, { name: "", description: "", schema: EXAMPLE_SCHEMA }]);
      this._list.lastElementChild?.querySelector("input")?.focus();
    });
    this.element = element("details", {}, this._title, element("p", { class: "faint" }, text("tools.note")), this._list, add);
    this.set([]);
  }

  /** @param {Tool[]} tools */
  set(tools) {
    this.tools = tools;
    this._list.replaceChildren(...tools.map((tool) => this._view(tool)));
    this._title.textContent = text("tools", { count: tools.length });
    this._changed();
  }

  /** Return the tools as a request has them; those without a name are not sent. */
  declarations() {
    return this.tools.filter(({ name, schema }) => name && isJsonObject(schema)).map(({ name, description, schema }) => ({
      function: { name, ...(description ? { description } : {}), parametersJson: schema },
    }));
  }

  /** @param {Tool} tool */
  _view(tool) {
    const error = element("p", { class: "bad", role: "alert" });
    /** @param {"name" | "description" | "schema"} member @param {HTMLInputElement | HTMLTextAreaElement} input */
    const field = (member, input) => {
      input.value = tool[member];
      input.addEventListener("input", () => {
        tool[member] = input.value;
        error.textContent = isJsonObject(tool.schema) ? "" : text("tools.invalid", { name: tool.name });
        this._changed();
      });
      return element("label", {}, text(`tools.${member}`), input);
    };
    const remove = element("button", { type: "button", class: "quiet", "aria-label": text("action.remove", { name: tool.name }) }, "×");
    remove.addEventListener("click", () => this.set(this.tools.filter((other) => other !== tool)));
    return element(
      "fieldset", {},
      field("name", element("input", { type: "text", autocomplete: "off", spellcheck: "false" })),
      field("description", element("input", { type: "text", autocomplete: "off" })),
      field("schema", element("textarea", { class: "code", rows: "3", spellcheck: "false" })),
      error, remove,
    );
  }
}

/**
 * Return the form for the results of a model's calls. `send` is called with the parts of the message with the results.
 * @param {ToolCall[]} calls
 * @param {(parts: Part[]) => void} send
 */
export function resultsForm(calls, send) {
  const inputs = calls.map(() => element("textarea", { rows: "2", class: "code" }));
  const fields = calls.map(({ name = "" }, place) => element("label", {}, text("chat.tool_result", { name: visible(name) }), inputs[place]));
  const form = element("form", { class: "results" }, element("p", { class: "faint" }, text("state.waiting_for_results")), ...fields, element("button", {}, text("chat.tool_send")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    form.remove();
    send(calls.map(({ callId = "", name = "" }, place) => ({ toolResult: { callId, name, parts: [{ text: { text: inputs[place]?.value ?? "" } }] } })));
  });
  return form;
}
