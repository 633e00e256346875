// What a user can do to a study: ask, tell, cancel, add. What cannot be undone asks first.
import { study as address } from "./api.js";
import { ago, ask, count, el, params } from "./dom.js";

const CONFIRM = "This cannot be undone.";

export class Acts {
  constructor(name, data, api) {
    Object.assign(this, { name, api, data, place: el("div", { class: "scroll" }) });
    this.buttons = data.read_only ? [] : [
      el("button", { class: "main", text: "Ask for a trial", onclick: () => this.ask() }),
      el("button", { text: "Add a known value", onclick: () => this.add() })];
  }

  post(act, body) { return this.api.post(address(this.name, `/${act}`), body); }

  // The pending trials. Rows are made again only when they differ, so that a focused button stays.
  show(data) {
    this.data = data;
    const { waiting, counts, read_only: still } = data;
    const seen = waiting.map((trial) => trial.number).join();
    if (seen !== this.seen) {
      this.seen = seen;
      this.ages = waiting.map(() => el("td"));
      const act = (trial) => el("td", {}, el("button", { text: "Tell", "aria-label": `Tell the value of trial ${trial.number}`, onclick: () => this.tell(trial) }), " ",
        el("button", { class: "risky", text: "Cancel", "aria-label": `Cancel trial ${trial.number}`, onclick: () => this.cancel(trial) }));
      const rows = waiting.map((trial, i) => el("tr", {}, el("td", { text: trial.number }), el("td", { text: params(trial.params) }), this.ages[i], still ? null : act(trial)));
      const heads = ["Trial", "Parameters", "For", ...(still ? [] : ["Act"])].map((text) => el("th", { scope: "col", text }));
      this.more = el("p", { class: "note" });
      this.place.replaceChildren(waiting.length ? el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)) : "", this.more);
    }
    waiting.forEach((trial, i) => { this.ages[i].textContent = ago(trial.seconds); });
    this.more.textContent = !waiting.length ? "None." : counts.pending > waiting.length ? `and ${count(counts.pending - waiting.length)} older ones` : "";
  }

  ask() {
    const names = this.data.context, context = names.length ? new Fields(this.data.space.filter((p) => names.includes(p.name)), {}) : null;
    ask(this.place, "Ask for a trial", el("div", {}, el("p", { class: "note", text: "It stays pending until you tell its value or cancel it." }), context?.place), async () => {
      const { trials } = await this.post("ask", context ? { context: context.values() } : {});
      setTimeout(() => this.tell(trials[0]));
    }, "Ask");
  }

  tell(trial) {
    const names = this.data.constraints.map((text) => text.split(/[<>=]/)[0].trim());
    const value = input({ required: true, name: "value" }), std = input({ min: 0, name: "std" });
    const others = names.map((name) => [name, input({ required: true })]);
    ask(this.place, `Value of trial ${trial.number}`, el("div", {}, el("p", { text: params({ ...trial.context, ...trial.params }) }), labelled("Value", value), ...others.map(([name, field]) => labelled(name, field)),
      labelled("Standard deviation of its noise, if known", std), el("p", { class: "note", text: CONFIRM })), () => {
      const told = others.length ? { objective: Number(value.value), ...Object.fromEntries(others.map(([name, field]) => [name, Number(field.value)])) } : Number(value.value);
      return this.post("tell", { number: trial.number, value: told, ...(std.value ? { std: Number(std.value) } : {}) });
    }, "Tell");
  }

  cancel(trial) {
    ask(this.place, `Cancel trial ${trial.number}?`, el("p", { text: `${params(trial.params)}. ${CONFIRM}` }), () => this.post("cancel", { number: trial.number }), "Cancel the trial", true);
  }

  add() {
    const { space, answer, arms } = this.data, simple = !arms && !space.some((p) => p.conditional || p.kind == null) && space.length <= 30;
    const fields = simple ? new Fields(space, answer?.params ?? {}) : new Json(answer?.params ?? []);
    const value = input({ required: true, name: "value" }), std = input({ min: 0, name: "std" });
    ask(this.place, "Add a known value", el("div", {}, el("p", { class: "note", text: `Add all values that you have, not only the best ones. ${CONFIRM}` }), fields.place,
      labelled("Value", value), labelled("Standard deviation of its noise, if known", std)),
    () => this.post("add", { params: fields.values(), value: Number(value.value), ...(std.value ? { std: Number(std.value) } : {}) }), "Add");
  }
}

const input = (more) => el("input", { type: "number", step: "any", ...more });
const labelled = (text, field) => el("label", { class: "block" }, text, field);

// A field for each parameter: a list of choices, or a number within its range.
class Fields {
  constructor(space, start) {
    this.space = space;
    this.fields = space.map((p, i) => {
      const at = Array.isArray(start) ? start[i] : start[p.name];
      if (p.choices) return el("select", {}, ...p.choices.map((choice, k) => el("option", { value: k, text: String(choice), selected: choice === at })));
      const field = input({ required: true, min: p.low, max: p.high, step: p.kind === "whole" ? 1 : "any" });
      field.value = at ?? p.low;
      return field;
    });
    this.place = el("div", { class: "fields" }, ...space.map((p, i) => labelled(p.choices ? p.name : `${p.name}, ${p.low} to ${p.high}`, this.fields[i])));
  }

  values() {
    const each = this.space.map((p, i) => (p.choices ? p.choices[Number(this.fields[i].value)] : Number(this.fields[i].value)));
    return /^x\[\d+\]$/.test(this.space[0].name) ? each : Object.fromEntries(this.space.map((p, i) => [p.name, each[i]]));
  }
}

// Parameters of a space with branches, or an arm: as JSON.
class Json {
  constructor(start) {
    this.field = el("textarea", { rows: 5, required: true, spellcheck: "false" });
    this.field.value = JSON.stringify(start, null, 1);
    this.place = labelled("Parameters, as JSON", this.field);
  }

  values() {
    try { return JSON.parse(this.field.value); } catch (error) { throw new Error(`The parameters are not JSON: ${error.message}`); }
  }
}
