// JSON schemas as lists of members.

import { element, prose } from "./elements.js";

/** Return the component that a reference names; any other value itself. */
export function resolve(description, schema) {
  if (schema?.$ref === undefined) return schema ?? {};
  return schema.$ref.slice(2).split("/").reduce((found, name) => found[name], description);
}

/** Return the view of a schema; that of a component is made when it is opened. */
export function schemaView(description, schema, depth = 0) {
  const found = resolve(description, schema);
  const properties = Object.entries(found.properties ?? {});
  const text = depth === 0 && found.description ? [element("p", {}, ...prose(found.description))] : [];
  if (!properties.length) return element("div", {}, ...text, element("p", {}, typeName(description, found)));
  const required = new Set(found.required);
  return element("div", {}, ...text, element("ul", { class: "schema" }, ...properties.map(([name, member]) =>
    element("li", {}, memberView(description, name, member, required.has(name), depth)))));
}

function memberView(description, name, schema, required, depth) {
  const head = [element("code", {}, name), ` ${typeName(description, schema)}${required ? ", required" : ""}`];
  // "required" is stated once
  if (schema.description) head.push(". ", ...prose(schema.description.replace(required ? /^Required\. / : "", "")));
  const inner = innerObject(description, schema);
  const values = valueList(description, schema);
  if (!inner && !values) return element("span", {}, ...head);
  const view = element("details", {}, element("summary", {}, ...head));
  view.addEventListener("toggle", () => {
    if (view.open && view.children.length === 1) view.append(inner ? schemaView(description, inner, depth + 1) : values);
  });
  return view;
}

/** Return the description of the values of an enum that a member refers to; undefined for any other member. */
function valueList(description, schema) {
  const reference = schema.$ref ? schema : schema.items ?? schema.anyOf?.[0];
  const found = reference?.$ref && resolve(description, reference);
  if (!found || found.properties || !found.description) return undefined;
  return element("p", { class: "values" }, ...prose(found.description));
}

/** Return the schema of the objects in a value; undefined for one without members. */
function innerObject(description, schema) {
  const found = resolve(description, schema);
  if (found.properties) return found;
  const inner = found.items ?? found.anyOf?.find((kind) => innerObject(description, kind)) ??
    (typeof found.additionalProperties === "object" ? found.additionalProperties : undefined);
  return inner && innerObject(description, inner);
}

const LIMITS = {
  minimum: (value) => `from ${value}`,
  exclusiveMinimum: (value) => `above ${value}`,
  maximum: (value) => `to ${value}`,
  exclusiveMaximum: (value) => `below ${value}`,
  minLength: (value) => (value > 1 ? `at least ${value} characters` : "not empty"),
  maxLength: (value) => `at most ${value} characters`,
  minItems: (value) => `at least ${value}`,
  maxItems: (value) => `at most ${value}`,
  maxProperties: (value) => `at most ${value}`,
  default: (value) => `default ${JSON.stringify(value)}`,
};

/** Return the range and the default of a value, in words. */
function limits(schema) {
  return Object.entries(LIMITS).filter(([name]) => schema[name] !== undefined).map(([name, text]) => text(schema[name]));
}

function typeName(description, schema) {
  if (schema?.$ref) return schema.$ref.split("/").pop();
  const found = schema ?? {};
  if (found.enum) return found.enum.filter((value) => value !== null).map((value) => `"${value}"`).join(" or ");
  if (found.anyOf) return found.anyOf.filter((kind) => kind.type !== "null").map((kind) => typeName(description, kind)).join(" or ");
  if (found.items) return [`array of ${typeName(description, found.items)}`, ...limits(found)].join(", ");
  const kind = [found.type ?? "any"].flat().filter((name) => name !== "null").join(" or ");
  return [kind, ...limits(found)].join(", ");
}
