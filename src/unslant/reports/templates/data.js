"use strict";
// reads what unslant.reports.page packed: questions, and every run's probabilities for them
const unslantData = (() => {
  const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const shorts = (text) => {
    const view = new DataView(bytes(text).buffer);
    return Uint16Array.from({ length: view.byteLength / 2 }, (_, i) => view.getUint16(2 * i, true));
  };
  const same = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

  class Run {
    constructor(raw, levels, questions) {
      Object.assign(this, raw);
      this.levels = levels;
      this.row = new Map(raw.at.map((question, i) => [question, i]));
      this.block = new Map();
      for (const block of raw.blocks) {
        block.contents = bytes(block.contents);
        block.probs = shorts(block.probs);
        block.chosen = bytes(block.chosen);
        block.index.forEach((row, i) => this.block.set(row, [block, i]));
      }
      for (const view of raw.views) {
        for (const name of ["ok", "contents", "labels", "chosen"]) view[name] = bytes(view[name]);
        view.probs = shorts(view.probs);
      }
      this.options = raw.at.map((question) => questions[question].o.length);
    }

    has(question) {
      return this.row.has(question);
    }

    // what is known about one question: measures by name, null where undefined
    of(question, name) {
      const row = this.row.get(question);
      return row === undefined ? null : this.measures[name][row];
    }

    // every page the question was shown on: contents and labels by position, probabilities by content
    pages(question) {
      const row = this.row.get(question);
      if (row === undefined) return [];
      const n = this.options[row];
      const slice = (values, at) => Array.from(values.slice(at, at + n));
      const pages = [];
      if (this.block.has(row)) {
        const [block, i] = this.block.get(row);
        for (let k = 0; k < block.k; k++) {
          pages.push({
            contents: slice(block.contents, ((block.shared ? 0 : i * block.k) + k) * n),
            labels: this.labels.slice(0, n),
            probs: slice(block.probs, (i * block.k + k) * n).map((p) => p / this.levels),
            chosen: block.chosen[i * block.k + k],
            name: "",
            order: true,
          });
        }
      }
      for (const view of this.views) {
        if (!view.ok[row]) continue;
        const at = row * view.width;
        const contents = slice(view.contents, at);
        const labels = slice(view.labels, at).map((label) => this.labels[label]);
        const known = pages.find((page) => page.order && same(page.contents, contents) && same(page.labels, labels));
        if (known) {
          known.name ||= view.name;
          continue;
        }
        const probs = slice(view.probs, at).map((p) => p / this.levels);
        pages.push({ contents, labels, probs, chosen: view.chosen[row], name: view.name, order: false });
      }
      return pages;
    }
  }

  const read = async (text) => {
    const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
    const data = await new Response(stream).json();
    return { ...data, runs: data.runs.map((raw) => new Run(raw, data.levels, data.questions)) };
  };
  return { read };
})();
