// Links to addresses that come from models and providers: only those of the web.

import { element } from "../elements.js";

/**
 * Return a link to an address of the web; its text for any other address.
 * @param {string} href
 * @param {(Node | string)[]} children
 */
export function webLink(href, children) {
  const parsed = URL.canParse(href) ? new URL(href) : null;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return element("span", {}, ...children);
  return element("a", { href: parsed.href, target: "_blank", rel: "noopener noreferrer" }, ...children);
}
