// Markdown of models as elements: the lexer of `marked` makes tokens, a table maps them to elements. HTML in it is text.

import { Lexer } from "../vendor/marked.js";
import { copyButton, element } from "../elements.js";
import { webLink } from "./links.js";
import { text } from "./strings.js";

/** @typedef {import("../vendor/marked.js").Token} Token */
/** @typedef {{[member: string]: any, type: string, raw: string, tokens?: Token[]}} Read what the table reads of a token */

const MAX_DEPTH = 24; // of lists and quotes in each other; what is deeper is text
const HEADING_OFFSET = 2; // the page has headings of its own
const ENTITIES = /** @type {Record<string, string>} */ ({ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" });

/** Type of a token -> its elements. @type {Record<string, (token: Read, depth: number) => (Node | string)[]>} */
const ELEMENTS = {
  space: () => [],
  def: () => [],
  hr: () => [element("hr")],
  br: () => [element("br")],
  heading: (token, depth) => [element(/** @type {"h3"} */ (`h${Math.min(6, token["depth"] + HEADING_OFFSET)}`), {}, ...inner(token, depth))],
  paragraph: (token, depth) => [element("p", {}, ...inner(token, depth))],
  blockquote: (token, depth) => [element("blockquote", {}, ...inner(token, depth))],
  code: (token) => [codeBlock(token["text"], token["lang"] ?? "")],
  list: (token, depth) => [list(token, depth)],
  list_item: (token, depth) => [element("li", {}, ...inner(token, depth))],
  checkbox: (token) => [token["checked"] ? "☑ " : "☐ "],
  table: (token, depth) => [table(token, depth)],
  text: (token, depth) => (token.tokens ? inner(token, depth) : [characters(token["text"])]),
  escape: (token) => [token["text"]],
  strong: (token, depth) => [element("strong", {}, ...inner(token, depth))],
  em: (token, depth) => [element("em", {}, ...inner(token, depth))],
  del: (token, depth) => [element("del", {}, ...inner(token, depth))],
  codespan: (token) => [element("code", {}, token["text"])],
  link: (token, depth) => [webLink(characters(token["href"]), inner(token, depth))],
  image: (token) => [image(token["href"], token["text"])],
};

/**
 * @param {Token[]} tokens
 * @param {number} depth
 */
function elements(tokens, depth) {
  return tokens.flatMap((token) => {
    const make = depth < MAX_DEPTH ? ELEMENTS[token.type] : undefined; // HTML and unknown tokens are text, as they are
    return make ? make(/** @type {Read} */ (token), depth + 1) : [token.raw];
  });
}

/**
 * @param {Read} token
 * @param {number} depth
 */
const inner = (token, depth) => elements(token.tokens ?? [], depth);

/**
 * Return a text with the characters that its references of HTML name.
 * @param {string} given
 */
function characters(given) {
  return given.replace(/&(#x[0-9a-f]{1,6}|#[0-9]{1,7}|[a-z]+);/gi, (whole, /** @type {string} */ name) => {
    if (!name.startsWith("#")) return ENTITIES[name] ?? whole;
    const code = /^#x/i.test(name) ? parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/**
 * @param {string} code
 * @param {string} language
 */
function codeBlock(code, language) {
  const shown = element("code", {}, code);
  const head = element("div", { class: "head" }, element("span", { class: "faint" }, language), copyButton(text("action.copy_code"), () => code, shown));
  return element("div", { class: "code" }, head, element("pre", { tabindex: "0" }, shown));
}

/**
 * @param {Read} token
 * @param {number} depth
 */
function list(token, depth) {
  const items = elements(token["items"], depth);
  if (!token["ordered"]) return element("ul", {}, ...items);
  return element("ol", { start: String(token["start"] || 1) }, ...items);
}

/**
 * @param {Read} token
 * @param {number} depth
 */
function table(token, depth) {
  /** @param {"th" | "td"} name @param {Read} cell */
  const made = (name, cell) => element(name, { class: cell["align"] ? `align-${cell["align"]}` : undefined }, ...inner(cell, depth));
  const head = element("tr", {}, ...token["header"].map((/** @type {Read} */ cell) => made("th", cell)));
  const rows = token["rows"].map((/** @type {Read[]} */ row) => element("tr", {}, ...row.map((cell) => made("td", cell))));
  const grid = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  return element("div", { class: "scroll", tabindex: "0", role: "group" }, grid);
}

/**
 * Return a link to a picture: the page loads nothing from other hosts.
 * @param {string} href
 * @param {string} name
 */
function image(href, name) {
  return webLink(characters(href), [text("chat.foreign_image", { name: name || href.slice(0, 80) })]);
}

/** Text of a response that grows: the blocks that are complete stay, and only the last one is read again. */
export class MarkdownText {
  constructor() {
    this.element = element("div", { class: "markdown" });
    this.source = "";
    this._complete = 0; // characters of the source whose elements stay
    this._last = /** @type {Node[]} */ ([]);
  }

  /** @param {string} added */
  append(added) {
    this.source += added;
  }

  /** Show the source as it is now. */
  draw() {
    const rest = this.source.slice(this._complete).replace(/\r\n?/g, "\n");
    const tokens = read(rest);
    const last = tokens.findLastIndex((token) => token.type !== "space"); // a list goes on after an empty line
    const complete = tokens.slice(0, Math.max(0, last));
    for (const node of this._last) node.parentNode?.removeChild(node);
    if (rest.length === this.source.length - this._complete) { // else a line end counts differently
      this.element.append(...nodes(complete));
      this._complete += complete.reduce((sum, token) => sum + token.raw.length, 0);
      this._last = nodes(tokens.slice(complete.length));
    } else {
      this._last = nodes(tokens);
    }
    this.element.append(...this._last);
  }

  /** Show the whole source again, with the links that it defines at its end. */
  finish() {
    this._complete = 0;
    this._last = [];
    this.element.replaceChildren(...nodes(read(this.source)));
  }
}

/**
 * @param {string} source
 * @returns {Token[]}
 */
function read(source) {
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(source);
  } catch { // nested too deeply for the lexer
    return [{ type: "paragraph", raw: source, text: source, tokens: [{ type: "text", raw: source, text: source, escaped: false }] }];
  }
}

/**
 * @param {Token[]} tokens
 * @returns {Node[]}
 */
const nodes = (tokens) => elements(tokens, 0).map((made) => (typeof made === "string" ? document.createTextNode(made) : made));
