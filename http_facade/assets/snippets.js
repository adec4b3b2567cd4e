// The command of curl for a call of the API reference.

import { shellJson, shellUrl, shellWord } from "./quoting.js";

/** Return the command of curl for a call; `body`: a JSON text, null for none; `form`: fields of a form, undefined for none. */
export function curl(method, url, key, body, form) {
  const request = method === "POST" && (body !== null || form) ? "" : `-X ${method} `;
  const parts = [`curl ${request}${shellUrl(url)}`, `-H ${shellWord(`authorization: Bearer ${key}`)}`];
  // not `-d`, which reads a file where the text begins with `@`
  if (body !== null) parts.push("-H 'content-type: application/json'", `--data-raw ${shellJson(body)}`);
  for (const [name, value] of Object.entries(form ?? {})) parts.push(`-F ${shellWord(`${name}=${value}`)}`);
  return parts.join(" \\\n  ");
}
