// Elements of the pages. Texts are set as texts: nothing that comes from a server is read as HTML.

/**
 * Return an element with attributes and children, which are elements or texts.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | boolean | undefined>} [attributes]
 * @param {...(Node | string | undefined)} children
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== undefined && child !== "") made.append(child);
  return made;
}

/**
 * Return the parts of a text of the description: what it has in backticks is code.
 * @param {string | undefined} text
 */
export function prose(text) {
  return (text ?? "").split(/`([^`]+)`/).map((part, place) => (place % 2 ? element("code", {}, part) : part));
}

/**
 * Return the element with an id.
 * @param {string} id
 * @returns {any} an element of the type that the page has there
 */
export const byId = (id) => document.getElementById(id);

/**
 * Return a button that copies the text that `text` returns, and the place where it says so. `shown` is selected where
 * the browser refuses to copy.
 * @param {string} label
 * @param {() => string} text
 * @param {Node} shown
 */
export function copyButton(label, text, shown) {
  const button = element("button", { type: "button", class: "quiet", "aria-label": label }, "Copy");
  const state = element("span", { role: "status", class: "faint" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      state.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(shown); // without the permission, or without TLS: ready for Ctrl+C
      state.textContent = "Selected: press Ctrl+C";
    }
  });
  return element("span", {}, state, " ", button);
}

/**
 * Return a code block with a title and a button that copies the text that `text` returns.
 * @param {string} title
 * @param {() => string} text
 */
export function snippet(title, text) {
  const code = element("code", {}, text());
  const head = element("div", { class: "head" }, element("h3", {}, title), copyButton(`Copy ${title}`, text, code));
  return element("div", { class: "snippet" }, head, element("pre", { tabindex: "0" }, code));
}
