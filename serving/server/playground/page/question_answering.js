import { CodePoints } from "./code_points.js";
import { element, percent } from "./elements.js";

export const signature = "serving_default";

export function rows(fields) {
  return [fields];
}

export function render([answer], [{ context }]) {
  const points = new CodePoints(context);
  const { start, end } = answer;
  const found = start < end;
  const sure = `probability ${percent(answer.probability)}`;
  return [
    element("p", { class: "value" }, found ? answer.answer : "No answer"),
    element("p", { class: "note" }, found ? `Characters ${start} to ${end} of the context, ${sure}` : sure),
    element(
      "p",
      { class: "text" },
      points.slice(0, start),
      found ? element("mark", {}, points.slice(start, end)) : "",
      points.slice(end, points.length),
    ),
  ];
}
