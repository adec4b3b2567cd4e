// Sends the code of a link that `umg serve` printed. It is in the fragment, which browsers send to no server.
const code = new URLSearchParams(location.hash.slice(1)).get("code");
if (code) {
  history.replaceState(null, "", location.pathname + location.search);
  document.querySelector("#code").value = code;
  document.querySelector("#code-form").submit();
}
