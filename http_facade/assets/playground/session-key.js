// Key that the gateway makes for the person of a session: it ends with the session, and is in the memory of the page alone.

import { setKey } from "../gateway.js";
import { CallError } from "./connect.js";

const PATH = "/console/playground-key.json";
/** Time after which the end of the key follows that of the session, which half an hour without use ends. */
const KEEP_MS = 5 * 60_000;

/** @typedef {{name: string, may_create: boolean, without_project: boolean, projects: {id: string, name: string}[]}} Choices */

/**
 * Return where the person of the session may make a key; null without a session, and for a person that may make none.
 * @returns {Promise<Choices | null>}
 */
export async function sessionChoices() {
  const response = await fetch(PATH, { redirect: "manual" }); // without a session it leads to the sign-in
  const found = response.ok ? await response.json() : null;
  return found?.may_create ? found : null;
}

/**
 * Make a key and use it until the page is closed. Throw CallError if the gateway refuses.
 * @param {string} project id of the project; "" for none
 */
export async function useSessionKey(project) {
  const { key_id: keyId, secret } = await act({ act: "create", project });
  setKey(secret, false);
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
