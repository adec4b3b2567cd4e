// Order of the results of the website's search: pages whose title has the words come first, and tasks before records.

const FIRST = /^(recipes\/|first-calls|clients|providers|guards|fallbacks|prompt-caches|operating|deploying)/;
const LAST = /CHANGELOG|bench\/|^(index|architecture|chaos|conformance|contributing|fidelity|fields|performance|releasing|reference\/grpc)/;
const asked = (new URLSearchParams(location.search).get("q") ?? "").toLowerCase().split(/\W+/).filter((word) => word.length > 2);

/** Return the number of words of the query that a title has, in any form: "budgets" for "budget". */
function wordsIn(title) {
  const words = title.toLowerCase().split(/\W+/);
  const stem = (word) => word.slice(0, Math.max(4, word.length - 3));
  return asked.filter((word) => words.some((other) => other.startsWith(stem(word)))).length;
}

var Scorer = {
  score: ([page, title, , , score]) => score + 10 * wordsIn(title) + (FIRST.test(page) ? 5 : 0) - (LAST.test(page) ? 15 : 0),
  // as in Sphinx
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
