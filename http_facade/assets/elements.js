// Elements of the pages. Texts are set as texts: nothing that comes from a server is read as HTML.

/** Return an element with attributes and children, which are elements or texts. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== ""));
  return made;
}

/** Return the parts of a text of the description: what it has in backticks is code. */
export function prose(text) {
  return (text ?? "").split(/`([^`]+)`/).map((part, place) => (place % 2 ? element("code", {}, part) : part));
}

/** Return the element with an id. */
export const byId = (id) => document.getElementById(id);

/** Return a code block with a title and a button that copies the text that `text` returns. */
export function snippet(title, text) {
  const code = element("code", {}, text());
  const button = element("button", { type: "button", class: "quiet", "aria-label": `Copy ${title}` }, "Copy");
  const state = element("span", { role: "status", class: "faint" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      state.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // without the permission, or without TLS: ready for Ctrl+C
      state.textContent = "Selected: press Ctrl+C";
    }
  });
  const head = element("div", { class: "head" }, element("h3", {}, title), element("span", {}, state, " ", button));
  return element("div", { class: "snippet" }, head, element("pre", { tabindex: "0" }, code));
}
