// What a page adds where scripts run: stepping through runs, filters, copying, links to a step.
// The page is whole without it. It asks for nothing, keeps nothing, and makes text only, never markup.
"use strict";
(() => {
  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  const button = (text, label, act) => {
    const made = make("button", { type: "button", textContent: text });
    if (label) made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  };

  const box = (text, change) => {
    const input = make("input", { type: "checkbox" });
    input.addEventListener("change", () => change(input.checked));
    return make("label", {}, input, ` ${text}`);
  };

  // -- stepping -------------------------------------------------------------------------------------------

  const unpacked = async (text) => {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };

  // "STABLE, generation 3, owns t-0" in parts of which each may have changed.
  const parts = (line) => (line === undefined ? [] : line.split(/(?<=[,;]) /));
  const bare = (part) => part.replace(/[,;]$/, "");

  class Stepper {
    constructor(element) {
      this.element = element;
      this.data = element.querySelector("script");
      this.last = Number(element.dataset.last);
      this.name = element.dataset.name;
      this.chart = document.getElementById(`${this.name}-chart`);
      this.at = 0;
      this.rows = null;
      this.known = { at: -1, parties: new Map() };
      this.output = make("output", {});
      this.slider = make("input", { type: "range", min: 0, max: this.last, value: 0 });
      this.slider.setAttribute("aria-label", `${element.dataset.unit} to show`);
      this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
      this.what = make("div", { className: "what" });
      this.what.setAttribute("aria-live", "polite");
      this.parties = make("dl", {});
      const inside = make(
        "div",
        { className: "controls" },
        make("strong", { textContent: "Step through it" }),
        button("|◀", "to the start", () => this.go(0)),
        button("◀", "one back", () => this.go(this.at - 1)),
        button("▶", "one forward", () => this.go(this.at + 1)),
        button("▶|", "to the end", () => this.go(this.last)),
        this.slider,
        this.output,
        box("hide what did not change", (hide) => element.classList.toggle("brief", hide)),
      );
      element.append(inside, this.what, this.parties);
      element.setAttribute("role", "group");
      element.setAttribute("aria-label", element.dataset.label);
      element.addEventListener("focusin", () => (Stepper.current = this));
      element.addEventListener("pointerdown", () => (Stepper.current = this));
      if (this.chart) {
        for (const column of this.chart.querySelectorAll("[data-at]")) {
          column.addEventListener("click", () => this.to(column.dataset.at));
        }
      }
      this.count();
    }

    count() {
      this.output.textContent = `${this.element.dataset.unit} ${this.at} of ${this.last}`;
      this.slider.value = this.at;
    }

    async to(label) {
      this.rows ??= await unpacked(this.data.textContent);
      const at = this.rows.findIndex((row) => row[0] === label);
      if (at >= 0) this.go(at);
    }

    async go(at) {
      this.at = Math.min(Math.max(at, 0), this.last);
      this.count();
      this.rows ??= await unpacked(this.data.textContent);
      this.show();
      try {
        history.replaceState(null, "", `#${this.name}:${this.at}`);
      } catch {
        // a page in a frame may not; the link is a convenience
      }
    }

    // Everybody after a step: name -> line.
    after(at) {
      const from = this.known.at <= at ? this.known : { at: -1, parties: new Map() };
      const parties = new Map(from.parties);
      for (let number = from.at + 1; number <= at; number += 1) {
        for (const [name, line] of Object.entries(this.rows[number][4])) {
          if (line === null) parties.delete(name);
          else parties.set(name, line);
        }
      }
      this.known = { at, parties };
      return parties;
    }

    show() {
      const [label, what, fault, seen] = this.rows[this.at];
      const before = this.at ? this.after(this.at - 1) : new Map();
      const now = this.after(this.at);
      const sentence = make("p", {});
      if (fault) sentence.append(make("b", { textContent: "environment" }), " ");
      sentence.append(what);
      this.what.replaceChildren(sentence);
      if (seen.length) {
        this.what.append(make("ul", {}, ...seen.map((one) => make("li", { textContent: one }))));
      }
      const rows = [];
      for (const name of new Set([...now.keys(), ...before.keys()])) {
        rows.push(...this.party(name, before.get(name), now.get(name)));
      }
      this.parties.replaceChildren(...rows);
      this.mark(label);
    }

    party(name, before, now) {
      const changed = this.at > 0 && before !== now;
      const line = make("dd", {});
      const [old, fresh] = [before, now].map((one) => new Set(parts(one).map(bare)));
      for (const part of parts(now)) {
        line.append(changed && !old.has(bare(part)) ? make("mark", { textContent: part }) : part, " ");
      }
      const gone = changed ? [...old].filter((part) => !fresh.has(part)) : [];
      if (gone.length) line.append(make("del", { textContent: gone.join(", ") }));
      const both = [make("dt", { textContent: name }), line];
      for (const one of both) one.className = changed ? "changed" : "same";
      return both;
    }

    mark(label) {
      if (!this.chart) return;
      let first = null;
      for (const column of this.chart.querySelectorAll("[data-at]")) {
        const here = column.dataset.at === label;
        column.classList.toggle("now", here);
        if (here) first ??= column;
      }
      if (first) reveal(first);
    }

    get seen() {
      const { top, bottom } = this.element.getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    }
  }

  Stepper.current = null;

  // A column of a chart, into the part of its box that is shown.
  const reveal = (column) => {
    const frame = column.closest(".scroll");
    if (!frame || frame.scrollWidth <= frame.clientWidth) return;
    const [left, inside] = [column.getBoundingClientRect(), frame.getBoundingClientRect()];
    if (left.left < inside.left || left.right > inside.right) {
      frame.scrollLeft += left.left - inside.left - inside.width / 3;
    }
  };

  const steppers = [...document.querySelectorAll(".stepper")].map((one) => new Stepper(one));

  document.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
    const element = event.target instanceof Element ? event.target : document.body;
    if (!(event.key in moves) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (element.closest("input, select, textarea, .scroll")) return;
    const inside = steppers.find((one) => one.element.contains(element));
    const current = Stepper.current?.seen ? Stepper.current : null;
    const far = event.key === "Home" || event.key === "End";
    const stepper = inside ?? (far ? null : (current ?? steppers.find((one) => one.seen)));
    if (!stepper) return;
    event.preventDefault();
    stepper.go(stepper.at + moves[event.key]);
  });

  // -- links, also to a step: #NAME:NUMBER ----------------------------------------------------------------

  const follow = () => {
    const [, name, step] = /^(.*?)(?::(\d+))?$/.exec(decodeURIComponent(location.hash.slice(1)));
    const stepper = step === undefined ? null : steppers.find((one) => one.name === name);
    const target = stepper?.element ?? document.getElementById(name);
    if (!target) return;
    for (let one = target.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    if (!stepper) return;
    Stepper.current = stepper;
    target.scrollIntoView({ block: "center" });
    stepper.go(Number(step));
  };
  addEventListener("hashchange", follow);
  follow();

  // -- a chart that is wider than the window begins where it is red ----------------------------------------

  const begin = (inside) => {
    for (const chart of inside.querySelectorAll("figure svg")) {
      const red = chart.querySelector(".veil, .col.marked");
      if (red) reveal(red);
    }
  };
  begin(document);
  document.addEventListener("toggle", (event) => event.target.open && begin(event.target), true);

  // -- tables: filters ------------------------------------------------------------------------------------

  const MANY = 8;

  const text = (cell) => (cell?.dataset.value ?? (cell?.querySelector("a, span, code") ?? cell)?.textContent ?? "").trim();

  const filtered = (table) => {
    const rows = [...(table.tBodies[0]?.rows ?? [])];
    const region = table.closest(".scroll");
    if (!region || rows.length < MANY) return;
    const label = region.getAttribute("aria-label");
    const search = make("input", { type: "search", placeholder: "filter rows" });
    search.setAttribute("aria-label", `Filter: ${label}`);
    const selects = [];
    for (const head of table.querySelectorAll("th[data-filter]")) {
      const values = [...new Set(rows.map((row) => text(row.cells[head.cellIndex])))].filter(Boolean).sort();
      if (values.length < 2) continue;
      const name = head.textContent;
      const select = make("select", {}, new Option(`any ${name}`, ""), ...values.map((one) => new Option(one)));
      select.setAttribute("aria-label", `${name}: ${label}`);
      select.column = head.cellIndex;
      selects.push(select);
    }
    const found = make("output", {});
    const words = rows.map(() => null);
    const apply = () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      rows.forEach((row, number) => {
        words[number] ??= row.textContent.toLowerCase();
        row.hidden =
          !wanted.every((word) => words[number].includes(word)) ||
          !selects.every((one) => !one.value || text(row.cells[one.column]) === one.value);
        left += !row.hidden;
      });
      found.textContent = left < rows.length ? `${left} of ${rows.length} rows` : "";
    };
    for (const control of [search, ...selects]) control.addEventListener("input", apply);
    region.before(make("p", { className: "controls" }, search, ...selects, found));
  };

  for (const table of document.querySelectorAll("main table:not(.heat)")) {
    const region = table.closest(".scroll");
    if (region && table.querySelector("tr.same")) {
      const hide = box("hide what did not change", (brief) => table.classList.toggle("brief", brief));
      region.before(make("p", { className: "controls" }, hide));
    } else {
      filtered(table);
    }
  }

  // -- copying a command ----------------------------------------------------------------------------------

  const copied = async (line) => {
    try {
      await navigator.clipboard.writeText(line);
      return true;
    } catch {
      return false;
    }
  };

  for (const code of document.querySelectorAll("dd code")) {
    const line = code.textContent;
    if (!line.startsWith("rebalance ")) continue;
    const copy = button("copy", `copy: ${line}`, async () => {
      const done = await copied(line);
      if (!done) getSelection().selectAllChildren(code);
      copy.textContent = done ? "copied" : "selected";
    });
    code.after(" ", copy);
  }
})();
