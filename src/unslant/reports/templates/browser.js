"use strict";
// the question browser: texts of questions reach the page as text only, never as markup
(() => {
  const PAGE = 50;
  const MOST_MAPS = 3;
  const byId = (id) => document.getElementById(id);
  const el = (tag, properties = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
      else if (name.startsWith("--")) node.style.setProperty(name, value);
      else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  };
  const fixed = (value, digits) => (value === null ? "–" : value.toFixed(digits));
  const short = (p) => (p >= 0.995 ? "1.0" : p.toFixed(2).replace(/^0/, ""));
  const wide = window.matchMedia("(min-width: 56.01rem)");

  const HOLDS = { "=": (a, b) => a === b, "<": (a, b) => a < b, ">": (a, b) => a > b };
  const holds = (run, q) => ([measure, sign, b]) => {
    const a = run.of(q, measure);
    return a !== null && HOLDS[sign](a, b);
  };
  const keep = ({ title, where }) => [title, (run, q) => where.every(holds(run, q))];
  const order = ({ title, measure, descending }) => {
    const key = (run, q) => {
      const value = measure ? run.of(q, measure) : 0;
      return value === null ? Infinity : descending ? -value : value;
    };
    return [title, (run) => (a, b) => key(run, a) - key(run, b) || a - b];
  };

  const start = ({ questions, runs, metric, filters: said, sorts: ordered }) => {
    const state = { found: [], page: 0, open: null, at: 0, by: "option", run: runs[0] };
    const words = questions.map((q) => [q.id, q.s, q.c ?? "", ...q.o].join("\n").toLowerCase());
    const controls = { search: byId("search"), run: byId("run"), filter: byId("filter"), subject: byId("subject"), sort: byId("sort") };
    const fill = (select, entries) => select.append(...entries.map(([value, text]) => el("option", { value }, text)));
    fill(controls.run, runs.map((run, i) => [i, run.name]));
    byId("run-label").hidden = runs.length < 2;
    const disagree = ["runs vote differently", (_, q) => new Set(runs.filter((r) => r.has(q)).map((r) => r.of(q, "vote"))).size > 1];
    const filters = [...said.map(keep), ...(runs.length > 1 ? [disagree] : [])];
    const sorts = ordered.map(order);
    fill(controls.filter, filters.map(([title], i) => [i, title]));
    fill(controls.sort, sorts.map(([title], i) => [i, title]));
    const fact = (q, digits) => `${metric.name} ${fixed(state.run.of(q, metric.key), digits)}`;
    const subjects = [...new Set(questions.map((q) => q.u))].sort();
    fill(controls.subject, [["", "all subjects"], ...subjects.filter(Boolean).map((s) => [s, s])]);
    controls.subject.parentElement.hidden = subjects.length < 2;

    // the list
    const find = () => {
      state.run = runs[Number(controls.run.value)];
      const wanted = controls.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      const keeps = filters[Number(controls.filter.value)][1];
      const subject = controls.subject.value;
      state.found = questions
        .map((_, q) => q)
        .filter((q) => state.run.has(q) && keeps(state.run, q) && (!subject || questions[q].u === subject))
        .filter((q) => wanted.every((word) => words[q].includes(word)))
        .sort(sorts[Number(controls.sort.value)][1](state.run));
      state.page = 0;
      list();
    };
    const title = (q) => questions[q].s || `question ${questions[q].id}`;
    const item = (q) => {
      const same = state.run.of(q, "consistency");
      const what = same === 0 ? "changes with order" : same === 1 ? "same in every order" : "one order";
      return el(
        "li",
        {},
        el(
          "button",
          { type: "button", "data-question": q, "aria-current": String(q === state.open), on: { click: () => open(q, true) } },
          el("span", { class: "stem" }, title(q)),
          el("span", { class: "small" }, [questions[q].id, what].join(" · ")),
          el("span", { class: "small" }, fact(q, 3)),
        ),
      );
    };
    const list = () => {
      const pages = Math.max(1, Math.ceil(state.found.length / PAGE));
      byId("list").replaceChildren(...state.found.slice(state.page * PAGE, (state.page + 1) * PAGE).map(item));
      byId("count").textContent = `${state.found.length.toLocaleString("en")} of ${state.run.at.length.toLocaleString("en")} questions`;
      byId("page").textContent = `page ${state.page + 1} of ${pages}`;
      byId("previous").disabled = state.page === 0;
      byId("next").disabled = state.page + 1 >= pages;
    };
    const turn = (by) => () => {
      state.page += by;
      list();
      byId("count").scrollIntoView({ block: "center" });
    };
    byId("previous").addEventListener("click", turn(-1));
    byId("next").addEventListener("click", turn(1));
    byId("list").addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const buttons = [...byId("list").querySelectorAll("button")];
      buttons[buttons.indexOf(document.activeElement) + step]?.focus();
      event.preventDefault();
    });

    // one question
    const open = (q, moved) => {
      state.open = q;
      state.at = 0;
      for (const button of byId("list").querySelectorAll("button")) button.setAttribute("aria-current", String(Number(button.dataset.question) === q));
      byId("browser").classList.add("open");
      detail();
      if (!moved) return;
      history.replaceState(null, "", `#q=${encodeURIComponent(questions[q].id)}`);
      if (!wide.matches) byId("detail").scrollIntoView();
      byId("detail").focus({ preventScroll: true });
    };
    const close = () => {
      byId("browser").classList.remove("open");
      const button = byId("list").querySelector("[aria-current=true]");
      (button ?? byId("search")).focus();
    };
    const letter = (content) => state.run.labels[content];
    const named = (q, content) => {
      const text = questions[q].o[content];
      return text ? `${letter(content)}, “${text.length > 60 ? `${text.slice(0, 57)}…` : text}”` : letter(content);
    };
    const verdict = (q, run, pages) => {
      const orders = pages.filter((page) => page.order).length;
      const right = run.of(q, "expected_accuracy");
      const vote = run.of(q, "vote");
      const parts = [run.of(q, "consistency") === 0 ? "The answer changes with the order" : run.of(q, "consistency") === 1 ? "The same answer in every order" : "Shown in one order"];
      if (right !== null && orders) parts.push(`right in ${Math.round(right * orders)} of ${orders}`);
      if (vote >= 0) parts.push(`voted ${named(q, vote)}${questions[q].a.length ? (run.of(q, "vote_accuracy") === 1 ? " (right)" : " (wrong)") : ""}`);
      return `${parts.join("; ")}.`;
    };
    // of many runs, all but one are folded, and drawn when opened
    const folded = (q, run) => {
      const right = run.of(q, "expected_accuracy");
      const says = right === null ? "" : ` right in ${Math.round(100 * right)} % of its orders`;
      const fold = el("details", {}, el("summary", {}, run.name, el("span", { class: "muted" }, says)));
      fold.addEventListener("toggle", () => {
        if (!fold.open || fold.children.length > 1) return;
        fold.append(heat(q, run, run.pages(q), true));
        show();
      });
      return fold;
    };
    const detail = () => {
      const q = state.open;
      const question = questions[q];
      const shownBy = runs.filter((run) => run.has(q));
      const pages = state.run.pages(q);
      byId("detail").replaceChildren(
        el("button", { type: "button", class: "back", on: { click: close } }, "‹ All questions"),
        el("p", { class: "meta" }, [question.id, question.u, fact(q, metric.digits)].filter(Boolean).join(" · ")),
        el("h3", { class: "verdict" }, verdict(q, state.run, pages)),
        el("div", { id: "shown" }),
        ...(shownBy.length > MOST_MAPS ? [state.run] : shownBy).map((run) => heat(q, run, run === state.run ? pages : run.pages(q), shownBy.length > 1)),
        ...(shownBy.length > MOST_MAPS ? shownBy.filter((run) => run !== state.run).map((run) => folded(q, run)) : []),
        legend(),
      );
      if (pages.length) show();
    };
    const orderName = (page) => page.contents.map(letter).join(" ");
    const show = (focus = false) => {
      const q = state.open;
      const question = questions[q];
      const pages = state.run.pages(q);
      state.at = Math.min(Math.max(state.at, 0), pages.length - 1);
      const page = pages[state.at];
      const move = (by) => () => {
        state.at += by;
        show();
      };
      const option = (content, position) => {
        const p = page.probs[content];
        const right = question.a.includes(content);
        const chosen = page.chosen === content;
        const marks = [right && "right answer", chosen && "chosen"].filter(Boolean).join(", ");
        return el(
          "li",
          { class: [chosen && "chosen", right && "right"].filter(Boolean).join(" ") },
          el("span", { class: "label" }, page.labels[position]),
          el("span", { class: "text" }, question.o[content] || "(no text)", marks ? el("span", { class: "marks" }, "  ", el("b", {}, marks)) : null),
          el("span", { class: "meter", "aria-hidden": "true" }, el("i", { "--p": p })),
          el("span", { class: "value" }, p.toFixed(3)),
        );
      };
      const where = [`Page ${state.at + 1} of ${pages.length}`, `options ${orderName(page)}`, page.name].filter(Boolean).join(" · ");
      byId("shown").replaceChildren(
        el(
          "div",
          { class: "shown" },
          el(
            "div",
            { class: "stepper" },
            el("button", { type: "button", "aria-label": "previous order", disabled: state.at === 0, on: { click: move(-1) } }, "‹"),
            el("span", { class: "where", role: "status" }, where),
            el("button", { type: "button", "aria-label": "next order", disabled: state.at + 1 === pages.length, on: { click: move(1) } }, "›"),
          ),
          question.c ? el("div", { class: "context", tabindex: "0" }, question.c) : null,
          el("div", { class: "stem" }, question.s || "(the file of responses holds no texts)"),
          el("ol", {}, ...page.contents.map(option)),
        ),
      );
      for (const row of byId("detail").querySelectorAll("tr[data-page]")) {
        const here = row.dataset.run === state.run.name && Number(row.dataset.page) === state.at;
        row.setAttribute("aria-selected", String(here));
        const button = row.querySelector("button");
        button.tabIndex = here ? 0 : -1;
        if (here && focus) button.focus();
      }
    };

    // the heat map: a row for each order, shaded by probability
    const heat = (q, run, pages, several) => {
      const question = questions[q];
      const n = question.o.length;
      const byOption = state.by === "option";
      const mean = (content) => {
        const orders = pages.filter((page) => page.order);
        return orders.reduce((sum, page) => sum + page.probs[content], 0) / orders.length;
      };
      const cell = (p, content, chosen) => {
        const kind = [p > 0.815 ? "hot" : p > 0.595 && "warm", chosen && "chosen", question.a.includes(content) && "right"].filter(Boolean).join(" ");
        const says = `${p.toFixed(3)}${chosen ? ", chosen" : ""}${question.a.includes(content) ? ", right option" : ""}`;
        return el("td", { class: kind, "--p": p, title: says, "aria-label": says }, short(p));
      };
      const select = (at, focus) => {
        state.at = at;
        if (run !== state.run) {
          controls.run.value = runs.indexOf(run);
          state.run = run;
          detail();
          list();
        }
        show(focus);
      };
      const row = (page, at) => {
        const order = byOption ? [...Array(n).keys()] : page.contents;
        const keys = (event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (!step) return;
          event.preventDefault();
          if (pages[at + step]) select(at + step, true);
        };
        return el(
          "tr",
          { "data-page": at, "data-run": run.name, on: { click: () => select(at, false) } },
          el(
            "th",
            { scope: "row" },
            el("button", { type: "button", tabindex: "-1", on: { keydown: keys } }, page.contents.map((c) => run.labels[c]).join(" "), page.name ? el("span", {}, ` ${page.name}`) : null),
          ),
          ...order.map((content) => cell(page.probs[content], content, page.chosen === content)),
        );
      };
      const heads = [...Array(n).keys()].map((i) =>
        byOption
          ? el("th", { scope: "col" }, `${run.labels[i]}`, el("small", { title: question.o[i] }, question.o[i]))
          : el("th", { scope: "col" }, run.labels[i], el("small", {}, i === 0 ? "first" : i === n - 1 ? "last" : "")),
      );
      const flip = (by) => () => {
        state.by = by;
        detail();
        byId("detail").querySelector(`[data-by=${by}]`).focus();
      };
      const toggle = (by, text) => el("button", { type: "button", "data-by": by, "aria-pressed": String(state.by === by), on: { click: flip(by) } }, text);
      const others = pages.filter((page) => !page.order).length;
      const orders = pages.filter((page) => page.order);
      const head = several ? `${run.name}: every order` : "Every order";
      return el(
        "div",
        { class: "heat" },
        el("div", { class: "head" }, el("h3", {}, head), el("div", { class: "toggle", role: "group", "aria-label": "Columns" }, toggle("option", "by option"), toggle("position", "by position"))),
        el(
          "p",
          { class: "explain" },
          byOption
            ? "One column for each option of the file: columns of one shade mean that the order does not matter."
            : "One column for each place on the page: a dark column means that the place itself is preferred.",
        ),
        el(
          "div",
          { class: "scroll" },
          el(
            "table",
            { "--n": n },
            el("thead", {}, el("tr", {}, el("td", { "aria-label": "order" }), ...heads)),
            el(
              "tbody",
              {},
              ...pages.flatMap((page, at) => (others && at === orders.length && at ? [el("tr", { class: "gap" }, el("th", { colspan: n + 1 }, "Other pages")), row(page, at)] : [row(page, at)])),
            ),
            byOption && orders.length > 1
              ? el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "mean (the vote)"), ...[...Array(n).keys()].map((i) => cell(mean(i), i, run.of(q, "vote") === i))))
              : null,
          ),
        ),
      );
    };
    const legend = () =>
      el("p", { class: "legend" }, el("span", {}, el("i", { class: "shade" }), "probability 0 to 1"), el("span", {}, el("i", { class: "ring" }), "chosen"), el("span", {}, el("i", { class: "dot" }), "right option"));

    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    controls.search.addEventListener("input", find);
    for (const name of ["filter", "subject", "sort"]) controls[name].addEventListener("change", find);
    controls.run.addEventListener("change", () => {
      find();
      if (state.open !== null && state.run.has(state.open)) detail();
    });
    byId("browser-state").hidden = true;
    byId("browser").hidden = false;
    find();
    const asked = decodeURIComponent((location.hash.match(/^#q=(.*)$/) ?? ["", ""])[1]);
    const linked = questions.findIndex((question) => question.id === asked);
    if (linked >= 0 && state.run.has(linked)) {
      open(linked, false);
      byId("questions").scrollIntoView();
    } else if (wide.matches && state.found.length) open(state.found[0], false);
    byId("browser").dataset.ready = "yes";
  };

  if (typeof DecompressionStream === "undefined") {
    byId("browser-state").textContent = "This browser is too old to unpack the questions; any browser from 2023 or later works.";
    return;
  }
  unslantData.read(JSON.parse(byId("browser-data").textContent)).then(start);
})();
