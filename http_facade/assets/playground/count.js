// Count: tokens of a text, as the tokenizer of the model's family counts them.

import { element } from "../elements.js";
import { CallView } from "./call-view.js";
import { COUNT_TOKENS } from "./contract.js";
import { Attachments, partOf } from "./media.js";
import { grouped, percent } from "./numbers.js";
import { text } from "./strings.js";

export class CountView extends CallView {
  /** @param {import("./shell.js").Shell} shell */
  constructor(shell) {
    super(shell, text("count.send"));
    this._text = element("textarea", { rows: "8", id: "prompt" });
    this._files = new Attachments({ label: text("action.attach"), changed: () => shell.changed() });
    this.inputs.append(this.field(text("count.text"), this._text), this._files.element);
  }

  modelChanged() {
    this.form.show([]);
  }

  /** @override */
  call() {
    const given = this._text.value ? [{ text: { text: this._text.value } }] : [];
    const parts = [...given, ...this._files.files.map(partOf)];
    if (!parts.length) return null;
    return { method: COUNT_TOKENS, message: { request: { model: this.shell.modelIds()[0] ?? "", messages: [{ role: "ROLE_USER", parts }] } } };
  }

  /**
   * @override
   * @param {{inputTokens?: number}} response
   */
  show({ inputTokens: count = 0 }) {
    const limit = this.shell.model()?.inputTokenLimit;
    this.result.append(element("p", { class: "figure" }, text("count.result", { count: grouped(count) })));
    if (limit) this.result.append(element("p", {}, text("count.share", { share: percent(count / limit), limit: grouped(limit) })));
    this.result.append(element("p", { class: "faint" }, text("count.by")));
    this.shell.remember(this._text.value, { text: this._text.value });
  }

  /** @param {{text: string}} saved */
  restore(saved) {
    this._text.value = saved.text;
  }
}
