// Quoting of texts in lines that people paste: the only module of the pages with the syntax of languages.
//
// Ids of models come from providers. Whatever an id contains, a line runs nothing of it, in any shell that it is pasted
// into (bash, dash, zsh, fish, PowerShell, cmd), and has no control character, which a terminal would take as a key, and
// no character that shows the line in another order. Hence a character that any of these shells reads as syntax is
// escaped in all of them: by the escapes of JSON where the text is JSON, else by those of `printf`.

/** Characters without a meaning inside the quotes of any shell or language. */
const PLAIN = "(?!\\p{DI})[\\p{L}\\p{M}\\p{N}\\p{S}\\p{Po} (){}\\[\\]_-]";
const SYNTAX = "['\"\\\\`$!%&|<>^\uff02\uff07]"; // Windows makes quotes of the two wide ones
const NOT_PLAIN = new RegExp(`(?!${PLAIN})[^]|${SYNTAX}`, "gu");
const BARE = /^[\w.:\/][\w.:\/@+=,-]*$/;

/**
 * Return a word of a command line that shells without a meaning for it take as this text.
 * @param {string} text
 */
export function shellWord(text) {
  if (BARE.test(text)) return text;
  const [, head = "", ends = ""] = /^([^]*?)(\n*)$/.exec(text) ?? [];
  if (text.search(NOT_PLAIN) === -1) return `'${text}'`;
  return `"$(printf %b '${head.replace(NOT_PLAIN, octal)}')"${ends && `'${ends}'`}`; // $( ) removes line ends
}

/** @param {string} character */
function octal(character) {
  return [...new TextEncoder().encode(character)].map((byte) => `\\0${byte.toString(8).padStart(3, "0")}`).join("");
}

/**
 * Return a word of a command line with a URL, which may have a query.
 * @param {string} url
 */
export function shellUrl(url) {
  const plain = url.replace(/[^\w.:\/@+=,~?&%*[\]-]/gu, (each) => encodeURIComponent(each).replace(/[!'()]/g, percent));
  return BARE.test(plain) ? plain : `'${plain}'`;
}

/** @param {string} character */
const percent = (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/**
 * Return a word of a command line with a JSON text; a text that is not JSON is quoted as it is.
 * @param {string} text
 */
export function shellJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return shellWord(text);
  }
  // outside of strings JSON has no character that needs an escape, except the quotes of the strings themselves
  const quoted = text.replace(/\r\n?/g, "\n").replace(/\\["\\]|"/g, (each) => (each === '"' ? each : utf16(each.slice(1))));
  return `'${quoted.split('"').map((part) => part.replace(NOT_PLAIN, kept)).join('"')}'`;
}

/**
 * Escape a character of a JSON text, except a line end and the backslash of an escape that is left.
 * @param {string} character
 */
const kept = (character) => (character === "\\" || character === "\n" ? character : utf16(character));

/**
 * Return a text with escapes of JSON and JavaScript, two for a character beyond 16 bits.
 * @param {string} text
 */
function utf16(text) {
  return text.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
}

/**
 * Return a string literal of JavaScript.
 * @param {string} text
 */
export function javascriptString(text) {
  return `"${text.replace(NOT_PLAIN, utf16)}"`;
}

/**
 * Return a string literal of Python, whose escapes are those of JavaScript for characters of 16 bits only.
 * @param {string} text
 */
export function pythonString(text) {
  /** @param {string} each */
  const escaped = (each) => (each.length === 1 ? utf16(each) : `\\U${Number(each.codePointAt(0)).toString(16).padStart(8, "0")}`);
  return `"${text.replace(NOT_PLAIN, escaped)}"`;
}

/**
 * Return a text for people, with escapes instead of characters that are not seen or change the order of others.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(/[\p{C}\p{DI}\u2028\u2029]/gu, utf16);
}
