// Form of a kind that makes one call for each press of its button: what it shares with the others of its kind.

import { element } from "../elements.js";
import { unary } from "./connect.js";
import { failureView, isAbort, requestIdView } from "./failures.js";
import { FieldsForm } from "./fields.js";
import { seconds } from "./numbers.js";
import { recordViews } from "./records.js";
import { text } from "./strings.js";

/** @typedef {import("./shell.js").Shell} Shell */
/** @typedef {import("./contract.js").Call} Call */
/** @typedef {import("./connect.js").Head} Head */

export class CallView {
  /**
   * @param {Shell} shell
   * @param {string} button words of the button
   */
  constructor(shell, button) {
    this.shell = shell;
    this.form = new FieldsForm(() => shell.changed());
    this.settings = this.form.element;
    this.inputs = element("div");
    this.result = element("div", { id: "result", "aria-live": "polite" });
    this._lack = element("p", { class: "bad", role: "alert" });
    this._controller = /** @type {AbortController | null} */ (null);
    this._button = element("button", { id: "send" }, button);
    this._stop = element("button", { id: "stop", type: "button", class: "quiet", disabled: true }, text("action.stop"));
    this._stop.addEventListener("click", () => this.stop());
    const form = element("form", {}, this.inputs, element("div", { class: "row" }, this._button, this._stop), this._lack);
    form.addEventListener("submit", (event) => { event.preventDefault(); this.run(); });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); this.run(); }
    });
    this.element = element("div", {}, form, this.result);
  }

  /**
   * Return a label and a field for a text, which the code follows.
   * @template {HTMLInputElement | HTMLTextAreaElement} Input
   * @param {string} label
   * @param {Input} input
   */
  field(label, input) {
    input.addEventListener("input", () => this.shell.changed());
    return element("label", {}, label, input);
  }

  stop() {
    this._controller?.abort();
  }

  /** @returns {Call | null} */
  call() {
    return null;
  }

  /**
   * Return the sentence about what a call lacks.
   * @returns {string}
   */
  lack() {
    return text("call.lack");
  }

  /**
   * Show the response to a call, whose fields may have been changed since.
   * @param {any} _response
   * @param {Head} _head
   * @param {Call} _call
   * @returns {void}
   */
  show(_response, _head, _call) {}

  /**
   * Return the views of a call's cost and story; none where its record is written later than usual.
   * @param {string} requestId
   * @returns {{cost?: HTMLElement, story?: HTMLElement}}
   */
  recordOf(requestId) {
    return recordViews(requestId);
  }

  /** Make the call, and show its response. */
  async run() {
    if (this._controller || !this.shell.ready()) return;
    const call = this.call();
    this._lack.textContent = call ? "" : this.lack();
    if (!call) return;
    const controller = (this._controller = new AbortController());
    const start = performance.now();
    this._setBusy(true);
    this.result.replaceChildren(element("p", { class: "faint" }, text("state.sending")));
    try {
      const { response, head } = await this.send(call, controller.signal);
      this.result.replaceChildren();
      this.show(response, head, call);
      if (head.dropped.length) this.result.append(element("p", { class: "faint" }, text("chat.dropped", { fields: head.dropped.join(", ") })));
      const { cost, story } = this.recordOf(head.requestId);
      const time = element("span", {}, text("figure.seconds", { seconds: seconds(performance.now() - start) }));
      this.result.append(element("div", { class: "figures" }, time, cost, requestIdView(head.requestId), story));
    } catch (error) {
      this.result.replaceChildren(isAbort(error) ? element("p", {}, text("state.stopped")) : failureView(error, () => this.run()));
    }
    this._controller = null;
    this._setBusy(false);
  }

  /**
   * @param {Call} call
   * @param {AbortSignal} signal
   */
  send({ method, message }, signal) {
    return unary(method, message, signal);
  }

  /** @param {boolean} isBusy */
  _setBusy(isBusy) {
    this.result.setAttribute("aria-busy", String(isBusy));
    this._button.disabled = isBusy;
    this._stop.disabled = !isBusy;
  }
}
