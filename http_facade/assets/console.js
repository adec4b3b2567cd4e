// Additions to the console's pages, which work without them: copy buttons, and the address of the gateway in commands.

const COPIED_MILLISECONDS = 2000;

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const label = button.textContent;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, COPIED_MILLISECONDS);
  });
}
for (const code of document.querySelectorAll("[data-origin]")) {
  code.textContent = code.textContent.replace("$UMG", location.origin);
}
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  document.getElementById("search")?.focus();
});
