import { element } from "./elements.js";
import { Refusal } from "./server.js";

export const signature = "serving_default";

export function rows({ text }) {
  const sentences = text.split("\n").filter((line) => line.trim() !== "");
  if (sentences.length < 2) throw new Refusal("Two sentences at least are needed, each in a line of its own.");
  return sentences.map((sentence) => ({ text: sentence }));
}

export function render(answers, sentences) {
  const vectors = answers.map((answer) => answer.sentence_embedding);
  const head = element("tr", {}, element("td"), ...vectors.map((_, j) => element("th", { scope: "col" }, j + 1)));
  const body = element("tbody");
  vectors.forEach((vector, i) => {
    const cells = vectors.map((other) => {
      const similarity = dot(vector, other);
      const cell = element("td", {}, similarity.toFixed(3));
      cell.style.backgroundColor = `rgb(59 74 154 / ${(100 * Math.max(0, similarity) ** 3 * 0.5).toFixed(1)}%)`;
      return cell;
    });
    const name = `${i + 1}. ${sentences[i].text}`;
    body.append(element("tr", {}, element("th", { scope: "row" }, name), ...cells));
  });
  return [
    element("p", { class: "note" }, "Cosine of the angle between the sentences' vectors: 1 where they are the same."),
    element("div", { class: "scroll" }, element("table", { class: "similarities" }, element("thead", {}, head), body)),
  ];
}

// The vectors are of length 1.
function dot(one, other) {
  return one.reduce((sum, value, i) => sum + value * other[i], 0);
}
