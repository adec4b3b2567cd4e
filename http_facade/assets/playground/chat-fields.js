// Settings of text models: which fields a model has, by its capabilities. A model that is not listed has all of them.

import { grouped } from "./numbers.js";
import { text } from "./strings.js";

/** @typedef {import("./fields.js").Field} Field */
/** @typedef {import("./contract.js").Model} Model */

const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"];
const REASONING = {
  /** @type {Field} */ switch: { path: "reasoning.mode", label: text("field.reasoning_switch"), type: "choice", values: ["REASONING_MODE_ENABLED", "REASONING_MODE_DISABLED"], prefix: "REASONING_MODE_" },
  /** @type {Field} */ budget: { path: "reasoning.budgetTokens", label: text("field.reasoning_budget"), type: "integer", min: -1 },
  /** @type {Field} */ level: { path: "reasoning.effort", label: text("field.reasoning_effort"), type: "choice", values: EFFORTS },
  /** @type {Field} */ thoughts: { path: "reasoning.includeThoughts", label: text("field.thoughts"), type: "switch" },
};
/** How callers control the model's reasoning -> its fields. @type {Record<string, Field[]>} */
const REASONING_FIELDS = {
  REASONING_CONTROL_SWITCH: [REASONING.switch],
  REASONING_CONTROL_BUDGET: [REASONING.budget, REASONING.thoughts],
  REASONING_CONTROL_LEVEL: [REASONING.level, REASONING.thoughts],
};

/**
 * Return the fields of a model; all of them for one that is not listed.
 * @param {Model | undefined} model
 * @returns {Field[]}
 */
export function chatFields(model) {
  const limit = model?.outputTokenLimit;
  const sampling = model?.sampling ?? {};
  const reasoning = model ? REASONING_FIELDS[model.capabilities?.reasoning ?? ""] ?? [] : Object.values(REASONING);
  return [
    { path: "maxOutputTokens", label: text("field.max_output_tokens"), type: "integer", min: 1, ...usual(limit && grouped(limit)) },
    { path: "temperature", label: text("field.temperature"), type: "number", min: 0, max: sampling.maxTemperature ?? 2, ...usual(sampling.temperature) },
    ...reasoning,
    .../** @type {Field[]} */ ([
      { path: "topP", label: text("field.top_p"), type: "number", min: 0, max: 1, ...usual(sampling.topP) },
      { path: "topK", label: text("field.top_k"), type: "number", min: 0, ...usual(sampling.topK) },
      { path: "stopSequences", label: text("field.stop"), type: "lines" },
      { path: "seed", label: text("field.seed"), type: "integer" },
      { path: "presencePenalty", label: text("field.presence_penalty"), type: "number", min: -2, max: 2 },
      { path: "frequencyPenalty", label: text("field.frequency_penalty"), type: "number", min: -2, max: 2 },
      ...(!model || model.capabilities?.search ? [/** @type {Field} */ ({ path: "search.mode", label: text("field.search"), type: "choice", values: ["SEARCH_MODE_ON", "SEARCH_MODE_AUTO", "SEARCH_MODE_OFF"], prefix: "SEARCH_MODE_" })] : []),
      ...(!model || model.capabilities?.structuredOutput ? [/** @type {Field} */ ({ path: "responseFormat.jsonSchema.schemaJson", label: text("field.schema"), type: "json" })] : []),
    ]).map((row) => ({ ...row, isRare: true })),
  ];
}

/** @param {string | number | undefined} value */
function usual(value) {
  return value === undefined || value === 0 ? {} : { placeholder: text("settings.default", { value }) };
}
