// Types of the messages of `umg.v1` in the JSON of protobuf, as far as the playground reads or writes them, and the
// paths of its methods. The schema documents each field.

/**
 * @typedef {object} Model
 * @property {string} id
 * @property {string} [displayName]
 * @property {string} [family]
 * @property {string[]} [operations]
 * @property {number} [inputTokenLimit]
 * @property {number} [outputTokenLimit]
 * @property {Capabilities} [capabilities]
 * @property {Price[]} [prices]
 * @property {{defaultDimensions?: number, dimensions?: number[], anyDimensions?: boolean, taskTypes?: string[]}} [embedding]
 * @property {{temperature?: number, maxTemperature?: number, topP?: number, topK?: number}} [sampling]
 */

/**
 * @typedef {object} Capabilities
 * @property {string[]} [inputModalities]
 * @property {string[]} [outputModalities]
 * @property {boolean} [tools]
 * @property {boolean} [structuredOutput]
 * @property {boolean} [search]
 * @property {string} [reasoning]
 */

/** @typedef {{unit?: string, microCreditsPerMillion?: string, size?: string, quality?: string}} Price */

/** @typedef {{role: string, parts?: Part[]}} Message */

/**
 * @typedef {object} Part
 * @property {{text?: string}} [text]
 * @property {Media} [media]
 * @property {{texts?: string[], summaries?: string[], redacted?: boolean}} [reasoning]
 * @property {ToolCall} [toolCall]
 * @property {{callId?: string, name?: string, parts?: Part[]}} [toolResult]
 * @property {{name?: string, queries?: string[]}} [serverToolCall]
 * @property {{name?: string, results?: {url?: string, title?: string}[]}} [serverToolResult]
 * @property {{text?: string}} [refusal]
 * @property {{type?: string}} [opaque]
 * @property {object} [state]
 * @property {boolean} [thought]
 */

/** @typedef {{kind: string, data?: string, uri?: string, mimeType?: string, filename?: string, transcript?: string}} Media */
/** @typedef {{callId?: string, name?: string, argumentsJson?: string, text?: string}} ToolCall */

/**
 * @typedef {object} GenerateEvent
 * @property {number} [partIndex]
 * @property {number} [textIndex]
 * @property {{droppedFields?: string[]}} [started]
 * @property {Part} [partStarted]
 * @property {string} [textDelta]
 * @property {string} [reasoningDelta]
 * @property {{summaryIndex?: number, text?: string}} [summaryDelta]
 * @property {string} [argumentsDelta]
 * @property {string} [refusalDelta]
 * @property {object} [state]
 * @property {Part} [partUpdated]
 * @property {{finishReason?: string, finishMessage?: string, blockReason?: string}} [finished]
 * @property {Usage} [usage]
 * @property {{data?: string, transcript?: string}} [mediaDelta]
 */

/** @typedef {{inputTokens?: number, outputTokens?: number, reasoningTokens?: number, cacheReadTokens?: number, estimated?: boolean}} Usage */

/**
 * @typedef {object} VideoTask
 * @property {string} taskId
 * @property {string} [model]
 * @property {string} state
 * @property {number} [progressPercent]
 * @property {{prompt?: string}} [parameters]
 * @property {{code?: string, message?: string}} [error]
 * @property {{variant?: string, mimeType?: string}[]} [results]
 * @property {string} [createTime]
 * @property {string} [callbackUrl]
 * @property {string} [callbackError]
 * @property {string} [remixedFromTaskId]
 */

/**
 * @typedef {object} RequestRecord
 * @property {string} [channel]
 * @property {string} [model]
 * @property {string} [duration]
 * @property {string} [firstByteDuration]
 * @property {string} [status]
 * @property {string[]} [dropped]
 * @property {string} [microCredits]
 * @property {boolean} [cached]
 * @property {boolean} [tokensEstimated]
 * @property {string} [agent]
 * @property {{channel?: string, upstreamModel?: string, duration?: string, upstreamStatusCode?: number, reason?: string}[]} [attempts]
 */

/**
 * A call of the contract: its method, `Service/Method` below `umg.v1`, and its request.
 * @typedef {{method: string, message: Record<string, unknown>}} Call
 */

export const GENERATE = "GenerationService/Generate";
export const STREAM_GENERATE = "GenerationService/StreamGenerate";
export const COUNT_TOKENS = "GenerationService/CountTokens";
export const EMBED = "EmbeddingService/Embed";
export const RERANK = "RerankService/Rerank";
export const GENERATE_IMAGE = "ImageService/GenerateImage";
export const CREATE_VIDEO = "VideoService/CreateVideoTask";
export const REMIX_VIDEO = "VideoService/RemixVideoTask";
export const LIST_VIDEOS = "VideoService/ListVideoTasks";
export const DELETE_VIDEO = "VideoService/DeleteVideoTask";
export const DOWNLOAD_VIDEO = "VideoService/DownloadVideo";
export const LIST_MODELS = "ModelService/ListModels";
export const GET_USAGE = "AdminService/GetUsage";
export const GET_RECORD = "AdminService/GetRequestRecord";

/**
 * Return a message without the members that are undefined, empty texts and empty lists.
 * @template {object} Given
 * @param {Given} message
 * @returns {Given}
 */
export function without(message) {
  const set = Object.entries(message).filter(([, value]) => value !== undefined && value !== "" && !(Array.isArray(value) && !value.length));
  return /** @type {Given} */ (Object.fromEntries(set));
}
