// Chooses the form for a model, asks the server and shows what it says.

import * as attention from "./attention.js";
import * as classification from "./classification.js";
import { element } from "./elements.js";
import * as embedding from "./embedding.js";
import * as fillMask from "./fill_mask.js";
import * as questionAnswering from "./question_answering.js";
import { models, predict, Refusal } from "./server.js";
import * as tagging from "./tagging.js";

const KINDS = {
  "fill-mask": fillMask,
  classification,
  tagging,
  "question answering": questionAnswering,
  embedding,
  attention,
};
const choice = document.getElementById("model");
let served = [];

function chosen() {
  return served[choice.selectedIndex];
}

function formOf(name) {
  return document.querySelector(`form[data-form="${name}"]`);
}

function answerOf(form) {
  return document.querySelector(`[data-answer="${form.dataset.form === "attention" ? "attention" : "model"}"]`);
}

function fieldsOf(form) {
  return [...form.querySelectorAll("textarea")].filter((field) => !field.closest("label").hidden);
}

// Shows a form with the fields that a signature has, and what the export gives as an example in them.
function show(form, inputs, example) {
  form.hidden = false;
  for (const field of form.querySelectorAll("textarea")) {
    field.closest("label").hidden = !inputs.includes(field.name);
    if (typeof example[field.name] === "string") field.value = example[field.name];
  }
}

function choose() {
  const model = chosen();
  for (const form of document.querySelectorAll("form")) form.hidden = true;
  for (const section of document.querySelectorAll("[data-answer]")) section.replaceChildren();
  document.getElementById("facts").textContent = model.versions.length
    ? `version ${model.versions.join(", ")}, ${model.kind ?? "of a kind that this page does not know"}`
    : "no version is served";
  if (!model.versions.length) return;
  const form = model.kind in KINDS ? formOf(model.kind) : null;
  if (form) show(form, model.inputs, model.example);
  else show(formOf("other"), ["request"], {});
  if (model.attention_inputs) show(formOf("attention"), model.attention_inputs, model.example);
  for (const mask of document.querySelectorAll(".mask")) mask.textContent = model.mask_token ?? "";
}

async function ask(form) {
  const model = chosen();
  const fields = Object.fromEntries(fieldsOf(form).map((field) => [field.name, field.value]));
  if (form.dataset.form === "other") {
    const answer = await predict(model.name, fields.request);
    return [element("pre", {}, JSON.stringify(answer, null, 2))];
  }
  const kind = KINDS[form.dataset.form];
  const rows = kind.rows(fields);
  const { predictions } = await predict(model.name, { signature_name: kind.signature, instances: rows });
  let shown;
  try {
    shown = kind.render(predictions, rows, model);
  } catch (error) {
    console.error(error);
    throw new Refusal("The answer is not what such a model gives. If a new version is served by now, load the page anew.");
  }
  const cut = predictions.find((answer) => answer.truncated);
  if (!cut) return shown;
  const sentence = `Not all was read, but ${cut.num_tokens} tokens with [CLS] and [SEP]: ${model.truncation.split(",")[0]}.`;
  return [element("p", { class: "warning" }, sentence), ...shown];
}

async function submit(event) {
  event.preventDefault();
  const form = event.target;
  const answer = answerOf(form);
  const button = form.querySelector("button:not([type])");
  const model = chosen();
  button.disabled = true;
  document.body.dataset.state = "asking";
  let shown;
  try {
    shown = await ask(form);
  } catch (error) {
    if (!(error instanceof Refusal)) console.error(error);
    const sentence = error instanceof Refusal ? error.message : "The page failed at this; its console says more.";
    shown = [element("p", { class: "warning", role: "alert" }, sentence)];
  }
  // Another model may have been chosen meanwhile.
  if (chosen() === model) answer.replaceChildren(...shown);
  button.disabled = false;
  document.body.dataset.state = "ready";
}

function insertMask() {
  const field = formOf("fill-mask").elements.text;
  field.setRangeText(chosen().mask_token, field.selectionStart, field.selectionEnd, "end");
  field.focus();
}

async function start() {
  try {
    served = await models();
  } catch (error) {
    document.getElementById("trouble").textContent = error.message;
    return;
  }
  choice.replaceChildren(...served.map((model) => element("option", {}, model.name)));
  choice.addEventListener("change", choose);
  for (const form of document.querySelectorAll("form")) form.addEventListener("submit", submit);
  document.querySelector(".insert-mask").addEventListener("click", insertMask);
  if (served.length) choose();
  document.body.dataset.state = "ready";
}

start();
