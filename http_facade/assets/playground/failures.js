// A failed call in words that a newcomer understands: what happened, the gateway's own words, what to do.

import { copyButton, element } from "../elements.js";
import { CallError } from "./connect.js";
import { grouped } from "./numbers.js";
import { isSessionKey } from "./session-key.js";
import { remedy, text } from "./strings.js";

const ENDED_KEYS = ["INVALID_KEY", "KEY_EXPIRED"];

/** @param {unknown} error */
export const isAbort = (error) => error instanceof DOMException && error.name === "AbortError";

/**
 * Return the view of an error, with a button that repeats the call if `retry` is given.
 * @param {unknown} error
 * @param {() => void} [retry]
 */
export function failureView(error, retry) {
  const failed = error instanceof CallError ? error : new CallError(String(error));
  const hasEnded = ENDED_KEYS.includes(failed.reason) && isSessionKey();
  const [happened, action] = hasEnded ? [text("session.ended"), text("session.ended.how")] : remedy(failed.reason);
  const view = element(
    "div", { class: "failure", role: "alert" },
    element("p", {}, element("strong", {}, `■ ${happened}`), " ", action, " ", ...timing(failed)),
    element("p", { class: "words" }, failed.message),
  );
  if (failed.requestId) view.append(requestIdView(failed.requestId));
  if (retry) {
    const button = element("button", { type: "button" }, text("action.retry"));
    button.addEventListener("click", () => { view.remove(); retry(); });
    view.append(button);
  }
  return view;
}

/** @param {CallError} failed */
function timing({ metadata, retrySeconds }) {
  const { limit_name: name, limit, spent, budget, reset_time: reset } = metadata;
  const parts = [];
  if (name) parts.push(`${name}: ${limit}.`);
  if (budget) parts.push(text("key.budget", { spent: spent ?? "", budget }) + ".");
  if (reset) parts.push(text("failure.until", { time: new Date(reset).toLocaleString() }));
  else if (retrySeconds) parts.push(text("failure.wait", { seconds: grouped(Math.ceil(retrySeconds)) }));
  return parts.map((part) => `${part} `);
}

/** @param {string} id */
export function requestIdView(id) {
  const shown = element("code", {}, id);
  return element("span", { class: "request-id" }, `${text("figure.request")} `, shown, " ", copyButton(text("action.copy_id"), () => id, shown));
}
