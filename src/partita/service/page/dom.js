// Elements, always made of text: whatever a study names or chooses is never taken for HTML.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = value;
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

export function number(value, digits = 4) {
  if (value == null) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(digits)));
}

export const count = (value) => (value ?? 0).toLocaleString("en");
export const shown = (value) => (typeof value === "number" ? number(value, 5) : String(value));

export function params(given) {
  if (given == null) return "–";
  if (Array.isArray(given)) return `[${given.map(shown).join(", ")}]`;
  return Object.entries(given).map(([name, value]) => `${name} ${shown(value)}`).join(", ");
}

export function ago(seconds) {
  if (seconds == null) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

// A dialog with a form, in the document or shadow that `near` is in; `action` returns a promise,
// whose error is shown.
export function ask(near, title, content, action, label, risky = false) {
  const dialog = near.getRootNode().getElementById("dialog");
  const fault = el("p", { class: "error", role: "alert" });
  const send = el("button", { class: risky ? "risky" : "main", type: "submit", text: label });
  const form = el("form", {
    onsubmit: async (event) => {
      event.preventDefault();
      send.disabled = true;
      fault.textContent = "";
      try {
        await action();
        dialog.close();
      } catch (error) {
        fault.textContent = error.message;
      }
      send.disabled = false;
    },
  }, el("h2", { id: "dialog-title", text: title }), content, fault,
  el("div", { class: "row" }, send, el("button", { type: "button", text: "Close", onclick: () => dialog.close() })));
  dialog.replaceChildren(form);
  if (!dialog.open) dialog.showModal();
}
