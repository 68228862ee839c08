import { bars, element } from "./elements.js";

export const signature = "serving_default";

export function rows(fields) {
  return [fields];
}

export function render([answer]) {
  if ("value" in answer) return [element("p", { class: "value" }, Number(answer.value.toPrecision(5)))];
  const several = "holds" in answer;
  const labels = answer.labels.map((name, i) => ({
    name,
    probability: answer.probabilities[i],
    chosen: several ? answer.holds[i] : name === answer.label,
  }));
  labels.sort((one, other) => other.probability - one.probability);
  const chosen = labels.filter((label) => label.chosen).map((label) => label.name);
  return [element("p", { class: "value" }, chosen.join(", ") || "None of the labels"), bars(labels)];
}
