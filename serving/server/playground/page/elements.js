// Elements of the page. Whatever a person or a model says becomes text, never markup.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

export function percent(probability) {
  return `${(100 * probability).toFixed(1)} %`;
}

// Rows of {name, probability, chosen}, each with a bar.
export function bars(rows) {
  const body = element("tbody");
  for (const { name, probability, chosen } of rows) {
    const bar = element("div", { class: "bar" });
    bar.style.width = `${(100 * probability).toFixed(2)}%`;
    body.append(
      element(
        "tr",
        { class: chosen ? "chosen" : "" },
        element("th", { scope: "row" }, name),
        element("td", { class: "number" }, percent(probability)),
        element("td", {}, bar),
      ),
    );
  }
  return element("table", { class: "bars" }, body);
}
