// Texts of the page that is shown with a contrast below 4.5 (WCAG 2.2, 1.4.3): an expression for `evaluate`.
(() => {
  const LEAST = 4.5;
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = ([red, green, blue]) => [red, green, blue]
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const over = ([red, green, blue, alpha = 1], below) =>
    [red, green, blue].map((value, place) => value * alpha + below[place] * (1 - alpha));
  const backs = new Map();
  const back = (node) => {
    if (!node) return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
    if (!backs.has(node)) backs.set(node, over(channels(getComputedStyle(node).backgroundColor), back(node.parentElement)));
    return backs.get(node);
  };
  const faults = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest(".headerlink, svg, script, style, :disabled") || !parent.checkVisibility()) continue;
    const color = getComputedStyle(parent).color;
    const behind = back(parent);
    const [one, other] = [luminance(over(channels(color), behind)), luminance(behind)];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < LEAST) faults.add(`contrast ${contrast.toFixed(1)}: ${color} on rgb(${behind.map(Math.round)}), <${parent.tagName.toLowerCase()} class="${parent.className}">`);
  }
  return [...faults].slice(0, 10);
})()
