// Kinds of calls that the playground makes, each with the operation that a model must have for it, and its view.

/** @typedef {import("./shell.js").Shell} Shell */

/**
 * View of a kind: its fields and results. `settings` is shown beside it.
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {HTMLElement} settings
 * @property {() => void} modelChanged
 * @property {() => import("./contract.js").Call | null} call the call that is made now, for the code
 * @property {() => void} stop stops the call that is made
 * @property {() => void} [close] ends what goes on beside calls
 * @property {(saved: any) => void} restore shows what `Shell.remember` was given
 * @property {(given: any) => void} [receive] takes what `Shell.open` was given
 */

/** @typedef {"chat" | "count" | "embed" | "rerank" | "image" | "edit" | "video"} KindName */
/** @typedef {{operation: string, compares?: boolean, load: () => Promise<new (shell: Shell) => View>}} Kind */

/** @type {Record<KindName, Kind>} */
export const KINDS = {
  chat: { operation: "MODEL_OPERATION_GENERATE", compares: true, load: async () => (await import("./chat.js")).ChatView },
  count: { operation: "MODEL_OPERATION_COUNT_TOKENS", load: async () => (await import("./count.js")).CountView },
  embed: { operation: "MODEL_OPERATION_EMBED", load: async () => (await import("./embed.js")).EmbedView },
  rerank: { operation: "MODEL_OPERATION_RERANK", load: async () => (await import("./rerank.js")).RerankView },
  image: { operation: "MODEL_OPERATION_GENERATE_IMAGE", load: async () => (await import("./image.js")).ImageView },
  edit: { operation: "MODEL_OPERATION_EDIT_IMAGE", load: async () => (await import("./edit-image.js")).EditImageView },
  video: { operation: "MODEL_OPERATION_CREATE_VIDEO", load: async () => (await import("./video.js")).VideoView },
};

/**
 * Return the kind with a name; `chat` for any other text.
 * @param {string | null} name
 * @returns {KindName}
 */
export const kindNamed = (name) => (name !== null && name in KINDS ? /** @type {KindName} */ (name) : "chat");
