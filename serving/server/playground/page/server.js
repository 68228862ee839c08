// The server's own REST interface, which every client has.

// What went wrong, in a sentence for the person.
export class Refusal extends Error {}

export async function models() {
  return (await answered("/playground/models.json")).models;
}

export async function predict(model, request) {
  const path = `/v1/models/${encodeURIComponent(model)}:predict`;
  return answered(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: typeof request === "string" ? request : JSON.stringify(request),
  });
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch {
    throw new Refusal("The server does not answer. Is it still running?");
  }
  let document;
  try {
    document = await response.json();
  } catch {
    throw new Refusal(`The server's answer (status ${response.status}) cannot be read.`);
  }
  if (!response.ok) throw new Refusal(document.error ?? `The server refused with status ${response.status}.`);
  return document;
}
