"use strict";
// charts, their tooltips, and tables that sort
(() => {
  const tip = document.getElementById("tip");
  let term = null; // the term whose meaning is shown
  let leaving = 0;
  const hide = () => {
    tip.hidden = true;
    term = null;
  };
  const place = (x, y, under, gap = 14) => {
    const left = Math.min(x, window.innerWidth - tip.offsetWidth - 8);
    const above = y - tip.offsetHeight - gap;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : under + gap}px`;
  };
  const point = (_handler, event, _item, value) => {
    if (value === null || value === undefined || value === "") return hide();
    tip.replaceChildren();
    const entries = typeof value === "object" ? Object.entries(value) : [["", value]];
    for (const [name, text] of entries) {
      const line = document.createElement("div");
      if (name.trim()) {
        const label = document.createElement("span");
        label.textContent = name;
        line.append(label);
      } else line.className = "name";
      line.append(String(text));
      tip.append(line);
    }
    term = null;
    tip.style.pointerEvents = "none";
    tip.hidden = false;
    place(event.clientX + 14, event.clientY, event.clientY);
  };

  // what a metric means, shown under the pointer or the focus until Escape; screen readers follow aria-describedby
  const placeAtTerm = () => {
    const box = term.getBoundingClientRect();
    place(box.left, box.top, box.bottom, 6);
  };
  const define = (button) => {
    clearTimeout(leaving);
    tip.textContent = document.getElementById(button.getAttribute("aria-describedby")).textContent;
    tip.style.pointerEvents = "auto";
    tip.hidden = false;
    term = button;
    placeAtTerm();
  };
  const leave = () => {
    if (term && document.activeElement !== term) leaving = setTimeout(hide, 200);
  };
  for (const button of document.querySelectorAll(".term")) {
    button.addEventListener("mouseenter", () => define(button));
    button.addEventListener("focus", () => define(button));
    button.addEventListener("mouseleave", leave);
    button.addEventListener("blur", hide);
  }
  tip.addEventListener("mouseenter", () => clearTimeout(leaving));
  tip.addEventListener("mouseleave", leave);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  const scrolled = () => (term && document.activeElement === term ? placeAtTerm() : hide());
  window.addEventListener("scroll", scrolled, { passive: true, capture: true });

  // one picture with a name: the table next to it has the numbers, mark by mark
  const named = (plot, name) => {
    const svg = plot.querySelector("svg");
    if (!svg) return;
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", name);
    const own = ["role", "aria-label", "aria-hidden", "aria-roledescription"];
    for (const part of svg.querySelectorAll("*")) own.forEach((name) => part.removeAttribute(name));
    svg.removeAttribute("aria-roledescription");
  };

  // a table wider than the page can be scrolled, and says so
  const hints = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
    }
  };
  window.addEventListener("resize", hints);
  document.addEventListener("toggle", hints, true);
  const opened = [];
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details:not([open])")) {
      folded.open = true;
      opened.push(folded);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const folded of opened.splice(0)) folded.open = false;
  });

  const draw = async () => {
    const charts = JSON.parse(document.getElementById("chart-data").textContent);
    for (const plot of document.querySelectorAll("[data-chart]")) {
      // ast: expressions are interpreted, so that the page may forbid code made from text
      const options = { ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: point };
      await window.vegaEmbed(plot, charts[plot.dataset.chart], options);
      named(plot, charts[plot.dataset.chart].description);
      plot.dataset.drawn = "yes";
    }
  };

  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = head.querySelector("button") ?? document.createElement("button");
      if (!button.parentElement) {
        button.type = "button";
        button.append(...head.childNodes);
        head.append(button);
      }
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        const key = (row) => {
          const cell = row.cells[column];
          return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
        };
        rows.sort((a, b) => {
          const [x, y] = [key(a), key(b)];
          return typeof x === "number" && typeof y === "number" ? y - x : String(y).localeCompare(String(x));
        });
        if (up) rows.reverse();
        table.tBodies[0].append(...rows);
      });
    });
  };

  document.querySelectorAll("table[data-sortable]").forEach(sortable);
  hints();
  draw();
})();
