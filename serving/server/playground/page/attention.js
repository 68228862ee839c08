import { element, percent } from "./elements.js";

export const signature = "attention";

export function rows(fields) {
  return [fields];
}

export function render([answer]) {
  // Tokens that fill rows up are empty, at the end.
  const tokens = answer.tokens.filter((token) => token !== "");
  const layers = answer.attention;
  const picture = new Picture(tokens, layers);
  return picture.elements;
}

// From white to dark; by the square root, since most shares are far below 0.1 and would all look like 0.
function colour(share) {
  const depth = Math.sqrt(Math.min(1, Math.max(0, share)));
  return [255 - 178 * depth, 255 - 255 * depth, 255 - 180 * depth].map(Math.round);
}

class Picture {
  #tokens;
  #layers;
  #layer = 0;
  #head = 0;
  #looking = 0;
  #choice = element("select", { "aria-label": "Layer" });
  #heads = element("div", { class: "heads" });
  #strip = element("div", { class: "tokens" });
  #said = element("p", { class: "note" });

  constructor(tokens, layers) {
    this.#tokens = tokens;
    this.#layers = layers;
    layers.forEach((_, i) => this.#choice.append(element("option", { value: i }, `Layer ${i + 1}`)));
    this.#choice.addEventListener("change", () => {
      this.#layer = Number(this.#choice.value);
      this.#draw();
    });
    this.#draw();
  }

  get elements() {
    const note =
      "Each square is a head: the row is the token that looks, the column the token looked at. " +
      "Choose a head and a token to see where the token looks; darker is more, in one scale for all.";
    return [element("p", { class: "note" }, note), this.#choice, this.#heads, this.#said, this.#strip];
  }

  #draw() {
    const heads = this.#layers[this.#layer].map((shares, i) => {
      const button = element("button", { type: "button" }, `Head ${i + 1}`, this.#square(shares));
      button.addEventListener("click", () => {
        this.#head = i;
        this.#mark();
      });
      return button;
    });
    this.#heads.replaceChildren(...heads);
    const tokens = this.#tokens.map((token, i) => {
      const button = element("button", { type: "button" }, token);
      button.addEventListener("click", () => {
        this.#looking = i;
        this.#mark();
      });
      return button;
    });
    this.#strip.replaceChildren(...tokens);
    this.#mark();
  }

  #square(shares) {
    const size = this.#tokens.length;
    const canvas = element("canvas", { width: size, height: size });
    const pixels = new ImageData(size, size);
    for (let row = 0; row < size; row++) {
      for (let column = 0; column < size; column++) {
        pixels.data.set([...colour(shares[row][column]), 255], 4 * (row * size + column));
      }
    }
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return canvas;
  }

  #mark() {
    const shares = this.#layers[this.#layer][this.#head][this.#looking];
    [...this.#heads.children].forEach((head, i) => head.setAttribute("aria-pressed", String(i === this.#head)));
    [...this.#strip.children].forEach((token, i) => {
      token.style.backgroundColor = `rgb(${colour(shares[i]).join(" ")})`;
      token.style.color = shares[i] > 0.35 ? "white" : "";
      token.title = percent(shares[i]);
      token.setAttribute("aria-pressed", String(i === this.#looking));
    });
    const looking = this.#tokens[this.#looking];
    const most = shares.indexOf(Math.max(...shares.slice(0, this.#tokens.length)));
    this.#said.textContent =
      `Layer ${this.#layer + 1}, head ${this.#head + 1}: ${looking} looks most at ${this.#tokens[most]} ` +
      `(${percent(shares[most])}).`;
  }
}
