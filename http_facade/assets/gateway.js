// Calls of the gateway. The key is in the memory of the page, and in the storage of the tab only if it is to be kept.

const STORED = "umg-key";
let current = sessionStorage.getItem(STORED) ?? "";

/** Return the key; "" for none. */
export const key = () => current;

/** Return whether the key is kept until the tab is closed. */
export const isKept = () => sessionStorage.getItem(STORED) !== null;

/** Set the key, and keep it in the storage of the tab or remove it from there. */
export function setKey(given, keep) {
  current = given.trim();
  if (keep && current) sessionStorage.setItem(STORED, current);
  else sessionStorage.removeItem(STORED);
}

/** Return the headers of a call with the key. */
export const headers = (more = {}) => ({ ...(current ? { authorization: `Bearer ${current}` } : {}), ...more });

/** Return the response to a call. Throw an error with the message of the gateway for a call that it refuses. */
export async function call(path, { body, signal, ...more } = {}) {
  const json = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const sent = headers(body === undefined ? {} : { "content-type": "application/json" });
  const response = await fetch(path, { ...json, ...more, signal, headers: { ...sent, ...more.headers } });
  if (response.ok) return response;
  let message = `the gateway answered with status ${response.status}`;
  try {
    const failed = await response.json();
    message = failed.error?.message ?? failed.message ?? message;
  } catch {
    // a proxy's own page, for example
  }
  throw new Error(message);
}

/** Yield the data of the events of a response, until `[DONE]`. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r\n|\n|\r/);
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const data = line.slice(5).trim();
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
  }
}
