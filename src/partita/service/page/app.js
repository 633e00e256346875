// The page: a list of studies, or one of them. The address after # says which.
import { api, study as address } from "./api.js";
import { ago, ask, count, el, number } from "./dom.js";
import { StudyPage } from "./study.js";

const main = document.getElementById("main"), line = document.getElementById("line");
let leaving = new AbortController();

const WORDS = { live: "live", lost: "reconnecting", token: "token needed" };
function changed(state) {
  line.dataset.state = state;
  if (line.textContent !== WORDS[state]) line.textContent = WORDS[state];
  if (state === "token") needToken();
}

function needToken() {
  if (document.getElementById("dialog").open) return;
  const field = el("input", { type: "password", required: true, autocomplete: "off" });
  ask(main, "This service needs a token", el("label", { class: "block" }, "The token that `partita serve` printed", field), async () => {
    sessionStorage.setItem("token", field.value.trim());
    await api.get("/studies");
    route();
  }, "Open");
}

function route() {
  leaving.abort();
  leaving = new AbortController();
  const name = decodeURIComponent(location.hash.replace(/^#\/?/, ""));
  document.getElementById("where").textContent = name;
  document.title = name ? `${name} – Partita` : "Partita";
  main.replaceChildren();
  if (name) {
    const page = new StudyPage(main, name, api, leaving.signal);
    api.follow(address(name, "/events"), leaving.signal, (data) => page.show(data), (state, error) => {
      changed(state);
      if (error?.status === 404) page.show({ problem: { detail: error.message } });
    });
  } else list();
}

// -- the list ---------------------------------------------------------------------------------------

function list() {
  const body = el("tbody"), empty = el("p", { class: "note" });
  const create = el("button", { class: "main", text: "New study", onclick: newStudy });
  main.append(el("div", { class: "row" }, el("h1", { text: "Studies" }), create),
    el("div", { class: "card scroll" }, el("table", {}, el("thead", {}, el("tr", {},
      ...["Study", "State", "Answer (mean, bounds)", "Certificate", "Values", "Values a second", "Last event"].map((text) => el("th", { scope: "col", text })))), body), empty));
  api.follow("/events", leaving.signal, ({ studies, creates }) => {
    create.hidden = !creates;
    empty.textContent = studies.length ? "" : "There are no studies yet. Create one here, with pt.connect, or with curl.";
    body.replaceChildren(...studies.map(row));
  }, changed);
}

function row(study) {
  const place = `#/${encodeURIComponent(study.id)}`;
  const cells = [el("a", { href: place, text: study.id }), el("span", { class: `state ${study.state}`, text: study.state })];
  if (study.error) {
    return el("tr", {}, el("td", {}, cells[0]), el("td", {}, cells[1]), el("td", { colspan: 5, class: "error", text: study.error }));
  }
  const answer = study.answer;
  const text = answer ? `${number(answer.mean)} (${number(answer.lower)} to ${number(answer.upper)})` : "–";
  const busy = study.state === "running";
  return el("tr", { class: "link", onclick: () => { location.hash = place; } }, ...[...cells, text, number(study.certificate), count(study.told),
    busy ? number(study.rate, 3) : "–", study.last ? `${ago(Date.now() / 1000 - study.last)} ago` : "–"].map((part) => el("td", {}, part)));
}

function newStudy() {
  const name = el("input", { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,99}", placeholder: "tune", name: "name" });
  const space = el("textarea", { rows: 7, required: true, spellcheck: "false", name: "space" });
  space.value = '{"parameters": [\n  ["lr", [0.0001, 0.1, "log"]],\n  ["depth", [1, 12, "int"]],\n  ["kind", {"choices": ["a", "b"]}]\n]}';
  const direction = el("select", { name: "direction" }, el("option", { text: "minimize" }), el("option", { text: "maximize" }));
  const content = el("div", {}, el("label", { class: "block" }, "Name", name), el("label", { class: "block" }, "Space, as JSON", space), el("label", { class: "block" }, "Direction", direction));
  ask(main, "New study", content, async () => {
    let given;
    try { given = JSON.parse(space.value); } catch (error) { throw new Error(`The space is not JSON: ${error.message}`); }
    const made = await api.post("/studies", { name: name.value, space: given, direction: direction.value });
    location.hash = `#/${encodeURIComponent(made.id)}`;
  }, "Create");
}

addEventListener("hashchange", route);
route();
