"use strict";
// charts, their tooltips, and tables that sort
(() => {
  const tip = document.getElementById("tip");
  const hide = () => {
    tip.hidden = true;
  };
  const place = (event) => {
    const gap = 14;
    const left = Math.min(event.clientX + gap, window.innerWidth - tip.offsetWidth - 8);
    const above = event.clientY - tip.offsetHeight - gap;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + gap}px`;
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
    tip.hidden = false;
    place(event);
  };
  window.addEventListener("scroll", hide, { passive: true });

  // one picture with a name: the table beside it has the numbers, mark by mark
  const named = (plot, name) => {
    const svg = plot.querySelector("svg");
    if (!svg) return;
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", name);
    const own = ["role", "aria-label", "aria-hidden", "aria-roledescription"];
    for (const part of svg.querySelectorAll("*")) own.forEach((name) => part.removeAttribute(name));
    svg.removeAttribute("aria-roledescription");
  };

  // a table that is wider than the page says so
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
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
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
