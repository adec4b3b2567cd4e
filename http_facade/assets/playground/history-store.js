// Conversations and results in the IndexedDB of the browser, at most 50 MB: the oldest go first.

/**
 * @typedef {object} Entry
 * @property {string} id
 * @property {import("./kinds.js").KindName} kind
 * @property {string} title
 * @property {string} model
 * @property {number} time milliseconds since 1970 of the last change
 * @property {number} size characters of its JSON
 * @property {any} saved what the view is restored from
 */

const NAME = "umg-playground";
const STORE = "entries";
export const MAX_SIZE = 50_000_000;

export class HistoryStore {
  /** @param {number} [maxSize] */
  constructor(maxSize = MAX_SIZE) {
    this._maxSize = maxSize;
    this._database = /** @type {Promise<IDBDatabase> | null} */ (null);
  }

  /** Return all entries, newest first. */
  async entries() {
    const found = /** @type {Entry[]} */ (await this._run("readonly", (store) => store.getAll()));
    return found.sort((one, other) => other.time - one.time);
  }

  /**
   * Keep an entry in place of the one with its id, and remove the oldest others beyond the limit.
   * @param {Omit<Entry, "size">} entry
   */
  async put(entry) {
    const kept = { ...entry, size: JSON.stringify(entry).length };
    await this._run("readwrite", (store) => store.put(kept));
    let size = 0;
    for (const { id, size: own } of await this.entries()) {
      size += own;
      if (size > this._maxSize) await this._run("readwrite", (store) => store.delete(id));
    }
  }

  async clear() {
    await this._run("readwrite", (store) => store.clear());
  }

  /**
   * @template Result
   * @param {IDBTransactionMode} mode
   * @param {(store: IDBObjectStore) => IDBRequest<Result>} act
   * @returns {Promise<Result>}
   */
  async _run(mode, act) {
    this._database ??= requested(openDatabase());
    return requested(act((await this._database).transaction(STORE, mode).objectStore(STORE)));
  }
}

function openDatabase() {
  const opening = indexedDB.open(NAME, 1);
  opening.addEventListener("upgradeneeded", () => opening.result.createObjectStore(STORE, { keyPath: "id" }));
  return opening;
}

/**
 * @template Result
 * @param {IDBRequest<Result>} request
 * @returns {Promise<Result>}
 */
function requested(request) {
  return new Promise((done, fail) => {
    request.addEventListener("success", () => done(request.result));
    request.addEventListener("error", () => fail(request.error));
  });
}
