// Panel with the code of the present call.

import { copyButton, element } from "../elements.js";
import { snippets } from "./code.js";
import { text } from "./strings.js";

export class CodePanel {
  /** @param {HTMLElement} place */
  constructor(place) {
    this._call = /** @type {import("./contract.js").Call | null} */ (null);
    this._language = "curl";
    this._languages = element("div", { class: "row", role: "group", "aria-label": text("code") });
    this._code = element("code");
    this._note = element("p", { class: "faint" });
    this._block = element("pre", { tabindex: "0", "aria-label": text("code") }, this._code);
    this._copy = copyButton(text("action.copy_code"), () => this._code.textContent ?? "", this._code);
    place.append(this._languages, this._block, this._copy, this._note);
    this.show(null);
  }

  focus() {
    const details = this._block.closest("details");
    if (details) details.open = true;
    (this._block.hidden ? details?.querySelector("summary") : this._block)?.focus();
  }

  /** @param {import("./contract.js").Call | null} call */
  show(call) {
    this._call = call;
    const made = call ? snippets(location.origin, call) : [];
    const shown = made.find(({ title }) => title === this._language) ?? made[0];
    this._code.textContent = shown?.code ?? "";
    this._block.hidden = this._copy.hidden = !shown;
    const notes = [text("code.note"), ...(shown?.isGrpc ? [text("code.note.grpc")] : []), ...(shown?.code.includes("BASE64_OF_") ? [text("code.note.files")] : [])];
    this._note.textContent = shown ? notes.join(" ") : text("code.empty");
    if (this._languages.children.length !== made.length) this._languages.replaceChildren(...made.map(({ title }) => this._button(title)));
    for (const button of this._languages.children) button.setAttribute("aria-pressed", String(button.textContent === shown?.title));
  }

  /** @param {string} title */
  _button(title) {
    const button = element("button", { type: "button", class: "quiet" }, title);
    button.addEventListener("click", () => { this._language = title; this.show(this._call); });
    return button;
  }
}
