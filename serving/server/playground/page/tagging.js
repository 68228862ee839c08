import { CodePoints } from "./code_points.js";
import { element, percent } from "./elements.js";

export const signature = "serving_default";
const COLOURS = 8;

export function rows(fields) {
  return [fields];
}

export function render([answer], [{ text }]) {
  const points = new CodePoints(text);
  const line = element("p", { class: "text" });
  const colours = new Map();
  let written = 0;
  for (const span of spans(answer)) {
    if (!colours.has(span.type)) colours.set(span.type, colours.size % COLOURS);
    line.append(
      points.slice(written, span.start),
      element(
        "mark",
        { class: `colour-${colours.get(span.type)}`, title: `${span.type}, ${percent(span.probability)}` },
        points.slice(span.start, span.end),
        element("small", {}, span.type),
      ),
    );
    written = span.end;
  }
  line.append(points.slice(written, points.length));
  const note = `${count(answer)} words read. A span's probability is that of its least certain word.`;
  return [line, element("p", { class: "note" }, note)];
}

function count(answer) {
  return answer.tags.filter((tag) => tag !== "").length;
}

// Stretches of words with one tag: `B-` begins one, `I-` goes on with one of its type; other tags are a word's own.
export function spans(answer) {
  const found = [];
  let open = null;
  answer.tags.forEach((tag, i) => {
    const [, mark, type] = /^([BI])-(.*)$/su.exec(tag) ?? [null, "", tag];
    const place = { start: answer.start[i], end: answer.end[i], probability: answer.probabilities[i] };
    if (mark === "I" && open?.type === type) {
      open.end = place.end;
      open.probability = Math.min(open.probability, place.probability);
      return;
    }
    open = null;
    if (tag === "" || tag === "O" || place.start < 0) return;
    found.push({ type, ...place });
    if (mark) open = found.at(-1);
  });
  return found;
}
