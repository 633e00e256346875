// One study: made once, then filled again with every event, so that nothing jumps.
import { Acts } from "./acts.js";
import { study as address } from "./api.js";
import { ago, count, el, number, params, shown } from "./dom.js";
import { Chart, drawMap, placed, stepped } from "./draw.js";
import { Table } from "./table.js";

export class StudyPage {
  constructor(main, name, api, signal) {
    Object.assign(this, { main, name, api, signal, data: null, at: null, map: null, made: false, drawn: 0 });
    this.fault = el("p", { class: "error", role: "alert" });
    main.append(this.fault);
  }

  show(data) {
    if (data.problem) {
      this.fault.textContent = data.problem.detail;
      return;
    }
    this.fault.textContent = "";
    this.data = data;
    if (!this.made) this.make(data);
    this.figures(data);
    this.curves(data);
    this.acts.show(data);
    this.table.changed(data.seq);
    // The pictures of the model cost the service some time: not with every value.
    const told = data.counts.told;
    if (told && !data.arms && (told < 50 || told >= 1.05 * this.drawn) && told !== this.drawn) {
      this.drawn = told;
      this.pictures();
    }
  }

  focused(field) { return field.getRootNode().activeElement === field; }

  path(rest) { return address(this.name, rest); }

  make(data) {
    this.made = true;
    const card = (size, title, note, ...children) => el("section", { class: `card ${size}`, "aria-label": title }, el("h2", { text: title }), el("p", { class: "note", text: note }), ...children);
    this.top = el("div", { class: "figures" });
    this.answerPlace = el("div", { class: "plot" });
    this.certificatePlace = el("div", { class: "plot" });
    this.tolerance = el("input", { type: "number", step: "any", min: 0, "aria-label": "Tolerance", placeholder: "0.05", size: 8,
      oninput: () => this.curves(this.data), onchange: () => this.choose() });
    this.reached = el("span", { class: "note", role: "status" });
    this.canvas = el("canvas", { class: "map", role: "application", tabindex: 0, "aria-label": "Map of the model over two parameters. Arrow keys move the point.",
      onclick: (event) => this.moveTo(this.map && placed(this.canvas, this.map, event)),
      onkeydown: (event) => { const values = this.map && stepped(this.map, event.key); if (values) { event.preventDefault(); this.moveTo(values); } } });
    new ResizeObserver(() => this.redrawMap()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redrawMap(), { signal: this.signal });
    const names = data.space.map((p) => p.name);
    const select = (label, chosen) => el("select", { "aria-label": label, onchange: () => this.pictures() }, ...names.map((text, i) => el("option", { text, value: text, selected: i === chosen })));
    this.x = select("Parameter across", 0);
    this.y = select("Parameter up", 1);
    this.layer = el("select", { "aria-label": "What the colour shows", onchange: () => this.redrawMap() }, ...[["mean", "mean"], ["upper", "upper bound"], ["lower", "lower bound"], ["evaluated", "evaluations"]].map(([value, text]) => el("option", { value, text })));
    this.legend = el("p", { class: "note" });
    this.slices = el("div", { class: "slices" });
    this.slicesAt = el("p", { class: "note point" });
    this.importance = el("div");
    this.table = new Table(this.name, data, this.api);
    this.acts = new Acts(this.name, data, this.api);
    const downloads = this.api.downloads.map((kind) => el("button", { text: `Download ${kind === "csv" ? "CSV" : "Parquet"}`,
      onclick: () => this.api.download(this.path(`/trials.${kind}`), `${this.name}.${kind}`).catch((e) => { this.fault.textContent = e.message; }) }));
    this.says = el("p", { class: "note steady" });
    this.ramp = el("div", { class: "ramp" }, el("span"), el("div", { class: "shades", "aria-hidden": "true" }), el("span"));
    const grid = el("div", { class: "grid" },
      el("section", { class: "card", "aria-label": "Answer" }, this.top, el("div", { class: "row" }, ...this.acts.buttons, ...downloads), el("p", { class: "note", text: [`${data.policy}, ${data.guarantee} bounds, δ = ${data.delta}, seed ${data.seed}`, ...data.constraints, ...(data.context.length ? [`for each ${data.context.join(", ")}`] : []), ...(data.expire_after ? [`trials expire after ${ago(data.expire_after)}`] : [])].join("; ") })),
      card("half", "Answer over evaluations", "The mean of the answer with its bounds, beside the best value observed, which owes much to luck.", this.answerPlace),
      card("half", "Certificate", "How much better any other setting can still be.", this.says, el("div", { class: "row" }, el("label", {}, "Tolerance", this.tolerance), this.reached), this.certificatePlace));
    const pending = card("", "Pending", "Trials that have been asked for and have no value yet.", this.acts.place);
    if (!data.arms) {
      if (names.length > 1) grid.append(card("half", "Map", "The model over two parameters, the others as at the cross. Click, or use the arrow keys, to move it.", el("div", { class: "row" }, el("label", {}, "across", this.x), el("label", {}, "up", this.y), el("label", {}, "colour", this.layer)), this.canvas, this.ramp, this.legend));
      grid.append(el("div", { class: "half stack" }, card("", "Importance", "Shares of the variance that vanish if a parameter is known; thin lines hold nine of ten draws.", this.importance), pending),
        card("", "Slices", "The model along each parameter through the point.", this.slicesAt, this.slices));
    }
    if (data.arms) grid.append(pending);
    grid.append(card("", "Trials", "Sorted and filtered by the service.", this.table.place));
    this.main.append(grid);
    this.answer = new Chart(this.answerPlace, { x: "evaluations", y: "value", series: [
      { label: "values, middle", colour: "grey", width: 1 }, { label: "10 %", colour: "grey", width: 0 }, { label: "90 %", colour: "grey", width: 0 },
      { label: "best value observed", colour: "orange", width: 1.5 }, { label: "lower", colour: "blue", width: 0 }, { label: "upper", colour: "blue", width: 0 }, { label: "answer's mean", colour: "blue", width: 2.5, points: true }],
    bands: [{ series: [3, 2], colour: "grey" }, { series: [6, 5], colour: "blue" }], legend: false, range: usual }, this.signal);
    this.answerPlace.before(el("p", { class: "note" }, ...[["blue", "answer's mean and bounds"], ["orange", "best value observed"], ["grey", "values observed: their median, and eight of ten of them"]].flatMap(([name, text]) => { const key = el("span", { class: "key" }); key.style.background = `var(--${name})`; return [key, `${text}  `]; })));
    if (!data.counts.told && !data.read_only) this.answerPlace.before(this.hint = firstSteps(this.name, this.api.downloads.length > 0));
    this.certificate = new Chart(this.certificatePlace, { x: "evaluations", y: "certificate", log: true, legend: false, series: [{ label: "certificate", colour: "blue", points: true }, { label: "tolerance", colour: "orange", width: 1.5 }] }, this.signal);
  }

  // The tolerance belongs to the study: other tabs and notebooks show it, too.
  choose() {
    if (this.data.read_only) return; // only here
    const tolerance = Number(this.tolerance.value) || null;
    this.api.post(this.path("/tolerance"), { tolerance }).then(() => { this.fault.textContent = ""; }, (error) => { this.fault.textContent = error.message; });
  }

  figures(data) {
    if (!this.focused(this.tolerance) && data.tolerance !== this.chosen) this.tolerance.value = data.tolerance ?? "";
    this.chosen = data.tolerance;
    this.says.textContent = data.certificate == null ? "It is not known yet." : [`Now ${data.certificate_says}`, data.held ? `in tests: ${data.held}` : ""].filter(Boolean).join("; ") + ".";
    const figure = (name, big, more) => el("div", { class: "figure" }, el("div", { class: "name", text: name }), el("div", { class: "big", text: big }), el("div", { class: "more", text: more }));
    const { answer, counts, noise, best } = data;
    const others = ["pending", "failed", "pruned", "expired"].filter((state) => counts[state]).map((state) => `${count(counts[state])} ${state}`);
    const spread = noise.spread == null ? "" : `replicates at ${count(noise.replicated)} points: ${number(noise.spread, 3)}`;
    this.top.replaceChildren(
      el("div", { class: "figure at" }, el("div", { class: "name", text: "Best setting" }), setting(answer?.params, data)),
      figure(data.direction === "minimize" ? "Mean, least" : "Mean, greatest", answer ? number(answer.mean) : "–", answer ? `${number(answer.lower)} to ${number(answer.upper)}` : data.context.length ? "each context has its own answer" : "no values yet"),
      figure("Certificate", number(data.certificate), data.certificate == null ? "not known yet" : `${data.guarantee === "calibrated" ? "an estimate" : data.guarantee}, at ${count(data.certified)} values`),
      figure("Values", count(counts.values), [data.n_evals ? `of ${count(data.n_evals)}` : "", ...others].filter(Boolean).join(", ")),
      figure("Best observed", best ? number(best.value) : "–", best ? `trial ${best.number}` : ""),
      figure("Noise, learned", number(noise.learned, 3), spread),
      figure("Values a second", data.state === "running" ? number(data.rate, 3) : data.state, data.step == null ? "" : `a request takes ${number(1000 * data.step, 2)} ms`));
  }

  curves(data) {
    if (!data || !data.values.n.length) return;
    this.hint?.remove();
    const { values, answers } = data;
    const all = [...new Set([...values.n, ...answers.map((row) => row[0])])].sort((a, b) => a - b);
    const at = (xs, ys) => { const known = new Map(xs.map((x, i) => [x, ys[i]])); return all.map((x) => known.get(x) ?? null); };
    const own = answers.map((row) => row[0]), column = (i) => at(own, answers.map((row) => row[i]));
    this.answer.show([all, at(values.n, values.middle), at(values.n, values.low), at(values.n, values.high), at(values.n, values.best), column(2), column(3), column(1)]);
    const rows = answers.filter((row) => row[4] > 0), tolerance = Number(this.tolerance.value) || null;
    if (rows.length) this.certificate.show([rows.map((row) => row[0]), rows.map((row) => row[4]), rows.map(() => tolerance)]);
    described(this.answerPlace, `The answer after ${count(all.at(-1))} values: ${number(data.answer?.mean)}; the best value observed: ${number(data.best?.value)}`);
    described(this.certificatePlace, `The certificate, ${number(data.certificate)} now`);
    this.reached.textContent = tolerance == null || data.certificate == null ? "" : data.certificate <= tolerance ? "reached" : `${number(data.certificate / tolerance, 2)} times too large`;
  }

  // -- the model --

  async pictures() {
    const at = this.at ? JSON.stringify(this.at) : undefined;
    const quiet = (work) => work.catch((error) => { this.legend.textContent = error.message; });
    if (this.x.options.length > 1) {
      if (this.x.value === this.y.value) this.y.selectedIndex = (this.x.selectedIndex + 1) % this.y.options.length;
      quiet(this.api.get(this.path("/map"), { x: this.x.value, y: this.y.value, at }).then((map) => { this.map = map; this.redrawMap(); }));
    }
    quiet(this.api.get(this.path("/slices"), { at }).then((data) => this.showSlices(data)));
    if (this.data.counts.told >= 5) this.api.get(this.path("/importance")).then((data) => this.showImportance(data)).catch((error) => { this.importance.textContent = error.message; });
    else this.importance.textContent = "It needs five values.";
  }

  redrawMap() {
    if (!this.map || !this.canvas.clientWidth) return;
    const { least, most } = drawMap(this.canvas, this.map, this.layer.value);
    const cells = this.map.cells.length > 1, top = cells && this.map.cells.some((cell) => cell.top);
    const what = this.layer.selectedOptions[0].text;
    this.ramp.firstChild.textContent = `${what} ${number(least, 3)}`;
    this.ramp.lastChild.textContent = number(most, 3);
    this.legend.textContent = `${this.layer.value === "evaluated" ? "" : "Dots are evaluations. "}${cells ? `Lines are cells, ${count(this.map.cells.length)} here. ` : ""}${top ? "The orange cell has the highest index: it keeps the certificate up." : ""}`;
  }

  moveTo(values) {
    if (!values) return;
    this.at = Array.isArray(this.map.at) ? [...this.map.at] : { ...this.map.at };
    const key = (name) => (Array.isArray(this.at) ? Number(name.slice(2, -1)) : name);
    this.at[key(this.map.x.name)] = values[0];
    this.at[key(this.map.y.name)] = values[1];
    this.pictures();
  }

  showSlices({ at, curves }) {
    this.slicesAt.replaceChildren(`Through ${params(at)}. `, ...(this.at ? [el("button", { text: "Back to the answer", onclick: () => { this.at = null; this.pictures(); } })] : []));
    this.sliceCharts ??= new Map();
    for (const curve of curves) {
      const { axis } = curve;
      let chart = this.sliceCharts.get(axis.name);
      if (!chart) {
        const place = el("div", { class: "plot" });
        this.slices.append(el("figure", {}, place));
        const choice = axis.kind === "choice";
        chart = new Chart(place, { x: axis.name, y: "value", height: 190, legend: false, scaleX: axis.log ? { distr: 3 } : {},
          series: [{ label: "lower", colour: "blue", width: choice ? 1 : 0, points: choice }, { label: "upper", colour: "blue", width: choice ? 1 : 0, points: choice }, { label: "mean", colour: "blue", points: choice }], bands: [{ series: [2, 1], colour: "blue" }],
          hooks: { draw: [(plot) => marker(plot, chart.at)] } }, this.signal);
        this.sliceCharts.set(axis.name, chart);
      }
      const xs = axis.kind === "choice" ? axis.values.map((_, i) => i) : axis.values.map(Number);
      chart.at = axis.kind === "choice" ? axis.values.indexOf(curve.value) : Number(curve.value);
      if (axis.kind === "choice") chart.options.x = `${axis.name}: ${axis.values.slice(0, 6).map((value, i) => `${i} ${shown(value)}`).join(", ")}`;
      chart.show([xs, curve.lower, curve.upper, curve.mean]);
      const means = curve.mean.filter((v) => v != null);
      described(chart.place, `Slice along ${axis.name}: the mean goes from ${number(Math.min(...means), 3)} to ${number(Math.max(...means), 3)}`);
    }
  }

  showImportance({ parameters }) {
    this.importance.replaceChildren(...parameters.slice(0, 12).map((row) => {
      const part = el("div", { class: "part" }), range = el("div", { class: "range" });
      part.style.width = `${100 * row.total}%`;
      range.style.left = `${100 * row.lower}%`;
      range.style.width = `${100 * (row.upper - row.lower)}%`;
      return el("div", { class: "bar" }, el("span", { text: row.name, title: row.name }), el("div", { class: "track" }, part, range), el("span", { text: `${Math.round(100 * row.total)} % (${Math.round(100 * row.lower)}–${Math.round(100 * row.upper)})` }));
    }));
  }
}

// What to do with a study that has no values.
function firstSteps(name, served) {
  const first = served ? `import partita as pt\nstudy = pt.connect("${location.origin}/${name}")\n` : "";
  return el("div", {}, el("p", { text: "There are no values yet. Ask for a trial with the button above and tell its value, or evaluate in a program:" }),
    el("pre", { tabindex: 0, text: `${first}trial = study.ask()\nstudy.tell(trial, f(trial.params))` }));
}

// The range of values that is worth seeing: early ones far away would hide the rest.
function usual([, , low, high, best, lower, upper]) {
  const sorted = [...low, ...high].filter((v) => v != null).sort((a, b) => a - b);
  const at = (part) => sorted[Math.round(part * (sorted.length - 1))];
  const last = (column) => column.filter((v) => v != null).at(-1) ?? at(0.5);
  const [from, to] = [Math.min(at(0.06), last(best), last(lower)), Math.max(at(0.94), last(best), last(upper))];
  const room = 0.06 * (to - from || Math.abs(to) || 1);
  return [from - room, to + room];
}

function marker(plot, at) {
  if (at == null || !Number.isFinite(at)) return;
  const x = plot.valToPos(at, "x", true), { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = "#c2185b";
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

// A chart is one picture to a screen reader, with a text that says what it shows.
function described(place, text) {
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", text);
}

// The parameters of the answer, a line each.
function setting(given, data) {
  if (given == null) return el("div", { class: "more", text: data.counts.told ? "–" : "no values yet" });
  const rows = Array.isArray(given) ? given.map((value, i) => [data.arms ? `arm, ${i}` : `x[${i}]`, value]) : Object.entries(given);
  return el("dl", {}, ...rows.slice(0, 12).flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: shown(value) })]));
}
