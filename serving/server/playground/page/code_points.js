// The server counts characters as code points; JavaScript's strings count UTF-16 units, two for many of them.

export class CodePoints {
  #points;

  constructor(text) {
    this.#points = Array.from(text);
  }

  get length() {
    return this.#points.length;
  }

  slice(start, end) {
    return this.#points.slice(start, end).join("");
  }
}
