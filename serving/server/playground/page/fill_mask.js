import { bars, element } from "./elements.js";

export const signature = "serving_default";

export function rows(fields) {
  return [fields];
}

export function render([answer], [{ text }], model) {
  const parts = text.split(model.mask_token);
  if (parts.length === 1) return [element("p", {}, `The text has no ${model.mask_token}.`)];
  const line = element("p", { class: "text" }, parts[0]);
  const tables = [];
  parts.slice(1).forEach((part, i) => {
    // Masks beyond the tokens that the model reads have no answer, or one that fills the row up.
    const tokens = answer.mask_positions[i] >= 0 ? answer.top_tokens[i] : [];
    line.append(element("span", { class: "blank" }, tokens[0] ?? "…", element("sub", {}, i + 1)), part);
    if (!tokens.length) return;
    const candidates = tokens.map((name, j) => ({
      name,
      probability: answer.top_probabilities[i][j],
      chosen: j === 0,
    }));
    tables.push(element("h3", {}, `Mask ${i + 1}`), bars(candidates));
  });
  return [line, ...tables];
}
