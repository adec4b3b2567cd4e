// Key that the gateway makes for the person of a session: it ends with the session. The storage of the tab has it only if it is
// to be kept.

import { element } from "../elements.js";
import { isKept, key, setKey } from "../gateway.js";
import { visible } from "../quoting.js";
import { CallError } from "./connect.js";
import { text } from "./strings.js";

const PATH = "/console/playground-key.json";
const STORED = "umg-session-key";
/** Time after which the end of the key follows that of the session, which half an hour without use ends. */
const KEEP_MS = 5 * 60_000;

/**
 * Projects for a key; `is_typed`: they are too many for a list, and the person types one.
 * @typedef {{name: string, may_create: boolean, without_project: boolean, is_typed: boolean, projects: {id: string, name: string}[]}} Choices
 */

/**
 * Return where the person of the session may make a key; null without a session, and for a person that may make none.
 * @returns {Promise<Choices | null>}
 */
export async function sessionChoices() {
  const response = await fetch(PATH, { redirect: "manual" }); // without a session it leads to the sign-in
  const found = response.ok ? await response.json() : null;
  return found?.may_create ? found : null;
}

let used = "";

/** Return whether the key in use is one of a session. */
export const isSessionKey = () => used !== "" && used === key();

/** Forget which key is one of a session, as another one is used. */
export function forgetSessionKey() {
  used = "";
  sessionStorage.removeItem(STORED);
}

/** Go on with the key of a session that the tab keeps. */
export function resumeSessionKey() {
  const keyId = sessionStorage.getItem(STORED);
  if (!keyId || !isKept()) return;
  used = key();
  prolong(keyId);
}

/**
 * Return the field of the project.
 * @param {Choices} choices
 */
export function projectField({ projects, is_typed: isTyped, without_project: isOptional }) {
  const id = "session-project";
  if (isTyped) {
    const placeholder = text(isOptional ? "session.typed_or_none" : "session.typed");
    return element("input", { id, placeholder, required: !isOptional, maxlength: "100", autocomplete: "off", spellcheck: "false" });
  }
  const options = projects.map((project) => element("option", { value: project.id }, visible(project.name)));
  if (isOptional) options.unshift(element("option", { value: "" }, text("session.none")));
  return element("select", { id }, ...options);
}

/**
 * Make a key and use it until the page is closed. Throw CallError if the gateway refuses.
 * @param {string} project id or name of the project; "" for none
 * @param {boolean} keep whether the key stays in the storage of the tab, for a reload
 */
export async function useSessionKey(project, keep) {
  const { key_id: keyId, secret } = await act({ act: "create", project });
  forgetSessionKey();
  setKey(secret, keep);
  used = secret;
  if (keep) sessionStorage.setItem(STORED, keyId);
  prolong(keyId);
}

/**
 * Move the end of a key with that of the session, while the page is seen.
 * @param {string} keyId
 */
function prolong(keyId) {
  const timer = setInterval(async () => {
    if (document.visibilityState !== "visible") return;
    await act({ act: "keep", key_id: keyId }).catch(() => clearInterval(timer)); // the session has ended
  }, KEEP_MS);
}

/** @param {Record<string, string>} fields */
async function act(fields) {
  const session = await fetch("/auth/me").then((response) => response.json());
  const body = new URLSearchParams({ ...fields, csrf_token: session.csrf_token ?? "", form_id: crypto.randomUUID() });
  const response = await fetch(PATH, { method: "POST", body, redirect: "manual" });
  if (response.ok) return response.json();
  const { error = {} } = await response.json().catch(() => ({}));
  throw new CallError(error.message ?? "the session has ended; sign in again", { reason: "PERMISSION_DENIED" });
}
