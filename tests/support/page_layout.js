// Faults of the layout of the page that is shown, as texts: an expression for `evaluate`, without side effects.
(() => {
  const root = document.documentElement;
  const width = root.clientWidth;
  const faults = [];
  const styles = new Map();
  const style = (node) => styles.get(node) ?? styles.set(node, getComputedStyle(node)).get(node);
  const name = (node) => `<${node.tagName.toLowerCase()}${node.className ? ` class="${node.className}"` : ""}> ${node.textContent.trim().slice(0, 40)}`;
  const SCREEN = { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity };
  const boxes = new Map();
  const meet = (one, other) => ({
    left: Math.max(one.left, other.left), right: Math.min(one.right, other.right),
    top: Math.max(one.top, other.top), bottom: Math.min(one.bottom, other.bottom),
  });
  // the part of the page in which an element is shown: its boxes that scroll or clip
  const shownIn = (node) => {
    if (!node || node === root || node === document.body) return SCREEN;
    if (!boxes.has(node)) {
      const outer = style(node).position === "fixed" ? SCREEN : shownIn(node.parentElement);
      boxes.set(node, style(node).overflowX === "visible" ? outer : meet(outer, node.getBoundingClientRect()));
    }
    return boxes.get(node);
  };
  const layers = new Map([[null, null]]);
  const layer = (node) => {
    if (!layers.has(node)) layers.set(node, ["fixed", "sticky"].includes(style(node).position) ? node : layer(node.parentElement));
    return layers.get(node);
  };

  if (root.scrollWidth > width) faults.push(`the page is ${root.scrollWidth} px wide`);

  const texts = [];
  const range = document.createRange();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE", "TITLE", "OPTION"].includes(parent.tagName)) continue;
    if (!parent.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    range.selectNodeContents(node);
    const [box, over] = [shownIn(parent), layer(parent)];
    if (over && (over.getBoundingClientRect().right <= 0 || over.getBoundingClientRect().left >= width)) continue; // a closed drawer
    for (const rect of range.getClientRects()) {
      const seen = meet(rect, box);
      if (seen.right - seen.left < 1 || seen.bottom - seen.top < 1) continue;
      if (seen.right <= 0 || seen.bottom + scrollY <= 0) continue; // links to skip to the text wait outside
      if (seen.right > width + 1 || seen.left < -1) faults.push(`text outside of the window: ${name(parent)}`);
      texts.push({ ...seen, parent, over });
    }
  }

  // text over text: a sweep over the lines from top to bottom. A line may reach into the next by the height of its accents.
  texts.sort((one, other) => one.top - other.top);
  let open = [];
  for (const text of texts) {
    open = open.filter((other) => other.bottom > text.top);
    for (const other of open) {
      if (other.parent === text.parent || other.over !== text.over) continue;
      const common = meet(text, other);
      const height = Math.min(text.bottom - text.top, other.bottom - other.top);
      if (common.right - common.left > 2 && common.bottom - common.top > height / 2) {
        faults.push(`text over text: ${name(other.parent)} and ${name(text.parent)}`);
      }
    }
    open.push(text);
  }

  for (const node of document.querySelectorAll("[hidden]")) {
    if (node.checkVisibility({ checkVisibilityCSS: true })) faults.push(`hidden, and shown nevertheless: ${name(node)}`);
  }
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    if (heading.checkVisibility() && heading.scrollWidth > heading.clientWidth + 1 && style(heading).display !== "inline") {
      faults.push(`cut heading: ${name(heading)}`);
    }
  }
  return [...new Set(faults)].slice(0, 10);
})()
