// Calls of the gateway. The key is in the memory of the page, and in the storage of the tab only if it is to be kept.

const STORED = "umg-key";
let current = sessionStorage.getItem(STORED) ?? "";

/** Return the key; "" for none. */
export const key = () => current;

/** Return whether the key is kept until the tab is closed. */
export const isKept = () => sessionStorage.getItem(STORED) !== null;

/**
 * Set the key, and keep it in the storage of the tab or remove it from there.
 * @param {string} given
 * @param {boolean} keep
 */
export function setKey(given, keep) {
  current = given.trim();
  if (keep && current) sessionStorage.setItem(STORED, current);
  else sessionStorage.removeItem(STORED);
}

/**
 * Return the headers of a call with the key.
 * @param {Record<string, string>} [more]
 * @returns {Record<string, string>}
 */
export const headers = (more = {}) => ({ ...(current ? { authorization: `Bearer ${current}` } : {}), ...more });
