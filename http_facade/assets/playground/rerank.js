// Rerank: documents in the order of their relevance to a query.

import { element } from "../elements.js";
import { CallView } from "./call-view.js";
import { RERANK } from "./contract.js";
import { text } from "./strings.js";

export class RerankView extends CallView {
  /** @param {import("./shell.js").Shell} shell */
  constructor(shell) {
    super(shell, text("rerank.send"));
    this._query = element("input", { type: "text", id: "query", autocomplete: "off" });
    this._documents = element("textarea", { rows: "6", id: "prompt" });
    this.inputs.append(this.field(text("rerank.query"), this._query), this.field(text("rerank.documents"), this._documents));
  }

  modelChanged() {
    this.form.show([]);
  }

  _lines() {
    return this._documents.value.split("\n").filter((line) => line.trim());
  }

  /** @override */
  call() {
    const documents = this._lines().map((line) => ({ text: line }));
    if (!documents.length || !this._query.value.trim()) return null;
    return { method: RERANK, message: { model: this.shell.modelIds()[0] ?? "", query: this._query.value.trim(), documents } };
  }

  /**
   * @override
   * @param {{results?: {index?: number, relevanceScore?: number}[]}} response
   * @param {import("./connect.js").Head} _head
   * @param {import("./contract.js").Call} call
   */
  show({ results = [] }, _head, { message }) {
    const documents = /** @type {{text: string}[]} */ (message["documents"]).map((document) => document.text);
    const rows = results.map(({ index = 0, relevanceScore: score = 0 }, place) => element(
      "tr", {},
      element("td", { class: "number" }, String(place + 1)),
      element("td", {}, documents[index]),
      element("td", {}, element("meter", { value: String(score), "aria-label": text("rerank.column.score") }), ` ${score.toFixed(4)}`),
      element("td", { class: "number" }, String(index + 1)),
    ));
    const columns = /** @type {const} */ (["place", "document", "score", "before"]);
    const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, text(`rerank.column.${name}`))));
    const table = element("table", {}, element("caption", {}, text("rerank.caption")), element("thead", {}, head), element("tbody", {}, ...rows));
    this.result.append(element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": text("rerank.caption") }, table));
    this.shell.remember(this._query.value, { query: this._query.value, documents: this._documents.value });
  }

  /** @param {{query: string, documents: string}} saved */
  restore(saved) {
    this._query.value = saved.query;
    this._documents.value = saved.documents;
  }
}
