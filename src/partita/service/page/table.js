// The table of trials: one page at a time, sorted and filtered by the service.
import { study as address } from "./api.js";
import { ask, count, el, number, params, shown } from "./dom.js";

const PAGE = 20, STATES = ["", "finished", "pending", "failed", "pruned"];

export class Table {
  constructor(name, data, api) {
    Object.assign(this, { name, api, sort: "number", order: "desc", after: 0, seq: 0, names: data.space.map((p) => p.name), busy: false });
    this.state = el("select", { "aria-label": "State", onchange: () => this.first() }, ...STATES.map((text) => el("option", { value: text, text: text || "all" })));
    const bound = (label) => el("input", { type: "number", step: "any", size: 8, "aria-label": label, placeholder: label, onchange: () => this.first() });
    this.least = bound("value at least");
    this.most = bound("value at most");
    this.head = el("tr");
    this.body = el("tbody");
    this.says = el("span", { class: "note", role: "status" });
    this.back = el("button", { text: "Previous", onclick: () => this.turn(-PAGE) });
    this.on = el("button", { text: "Next", onclick: () => this.turn(PAGE) });
    this.place = el("div", {}, el("div", { class: "row" }, el("label", {}, "State", this.state), this.least, this.most),
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, this.head), this.body)), el("div", { class: "row" }, this.back, this.on, this.says));
  }

  changed(seq) {
    if (seq === this.seq) return;
    this.seq = seq;
    if (this.after === 0) this.load();
  }

  first() { this.after = 0; this.load(); }
  turn(by) { this.after = Math.max(0, this.after + by); this.load(); }

  async load() {
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    try {
      const { sort, order, after } = this;
      const page = await this.api.get(address(this.name, "/trials"), { limit: PAGE, after, sort, order, state: this.state.value, least: this.least.value, most: this.most.value });
      this.show(page);
    } catch (error) {
      this.says.textContent = error.message;
    }
    this.busy = false;
    if (this.again) { this.again = false; this.load(); }
  }

  show({ trials, next, total }) {
    const columns = [["number", "Trial"], [null, "State"], ["value", "Value"], ...this.names.map((name) => [name, name])];
    this.head.replaceChildren(...columns.map(([key, text]) => {
      const sorted = key === this.sort ? (this.order === "asc" ? "ascending" : "descending") : "none";
      const arrow = { ascending: " ↑", descending: " ↓", none: "" }[sorted];
      return el("th", { scope: "col", "aria-sort": sorted }, key ? el("button", { text: text + arrow, onclick: () => this.sortBy(key) }) : text);
    }));
    this.body.replaceChildren(...trials.map((trial) => {
      const value = (name, i) => (Array.isArray(trial.params) ? trial.params[i] : trial.params[name]);
      return el("tr", {}, el("td", {}, el("button", { text: trial.number, "aria-label": `Details of trial ${trial.number}`, onclick: () => this.detail(trial.number) })),
        el("td", {}, el("span", { class: `state ${trial.state}`, text: trial.state })), el("td", { text: trial.value == null ? "" : number(trial.value, 6) }),
        ...this.names.map((name, i) => el("td", { text: value(name, i) === undefined ? "" : shown(value(name, i)) })));
    }));
    this.says.textContent = total ? `${count(this.after + 1)} to ${count(this.after + trials.length)} of ${count(total)}` : "no trials";
    this.back.disabled = this.after === 0;
    this.on.disabled = next == null;
  }

  sortBy(key) {
    if (key === this.sort) this.order = this.order === "asc" ? "desc" : "asc";
    else Object.assign(this, { sort: key, order: "asc" });
    this.first();
  }

  async detail(id) {
    const trial = await this.api.get(address(this.name, `/trials/${id}`));
    const rows = [["State", trial.state], ["Value", trial.value ?? "–"], ["Noise", trial.std ?? "not known"], ...Object.entries(trial.values ?? {}), ["Parameters", params(trial.params)],
      ...trial.events.map((event) => [event.kind, new Date(1000 * event.time).toLocaleString()]),
      ...(Object.keys(trial.reports).length ? [["Reports", params(trial.reports)]] : []), ...(trial.same.length > 1 ? [["Same parameters", trial.same.join(", ")]] : [])];
    ask(this.place, `Trial ${id}`, el("table", {}, el("tbody", {}, ...rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row", text: name }), el("td", { text: value }))))), async () => {}, "Done");
  }
}
