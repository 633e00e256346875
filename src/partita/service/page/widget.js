// The page of one study in a notebook: the same modules, with the kernel in place of the service.
import { StudyPage } from "./study.js";
import { el } from "./dom.js";

function render({ model, el: place }) {
  const root = place.attachShadow({ mode: "open" }), leaving = new AbortController();
  const main = el("main", { class: "page" }), dialog = el("dialog", { id: "dialog", "aria-labelledby": "dialog-title" });
  root.append(el("style", { text: model.get("style") }), main, dialog);
  const waiting = new Map();
  let next = 0;
  const send = (method, path, content) => new Promise((done, failed) => {
    const id = `${model.get("name")} ${(next += 1)} ${Math.random()}`;
    waiting.set(id, { done, failed });
    model.send({ id, method, path, content });
  });
  const api = {
    get: (path, query = {}) => send("GET", path, Object.fromEntries(Object.entries(query).filter(([, v]) => v !== undefined && v !== "").map(([k, v]) => [k, String(v)]))),
    post: (path, body) => send("POST", path, body),
    downloads: [],
  };
  const page = new StudyPage(main, model.get("name"), api, leaving.signal);
  const heard = (message) => {
    if (message.event) page.show(message.event);
    const asked = waiting.get(message.id);
    if (!asked) return;
    waiting.delete(message.id);
    if (message.problem) asked.failed(new Error(message.problem.detail));
    else asked.done(message.answer);
  };
  model.on("msg:custom", heard);
  api.get("/events").then((data) => page.show(data), (error) => page.show({ problem: { detail: error.message } }));
  return () => { model.off("msg:custom", heard); leaving.abort(); };
}

export default { render };
