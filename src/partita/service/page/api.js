// Requests to the service, and its events. The token comes in the address once and stays in this tab.
const found = location.hash.match(/[#&]token=([^&]+)/);
if (found) {
  sessionStorage.setItem("token", decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname + "#/");
}

function headers(more) {
  const token = sessionStorage.getItem("token");
  return { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
}

async function checked(answer) {
  const body = await answer.json().catch(() => ({ detail: `status ${answer.status}` }));
  if (!answer.ok) throw Object.assign(new Error(body.detail), { status: answer.status });
  return body;
}

async function get(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(kept).toString();
  return checked(await fetch(text ? `${path}?${text}` : path, { headers: headers() }));
}

async function post(path, body) {
  const key = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("");
  const more = { "Content-Type": "application/json", "Idempotency-Key": key };
  return checked(await fetch(path, { method: "POST", headers: headers(more), body: JSON.stringify(body) }));
}

async function download(path, name) {
  const answer = await fetch(path, { headers: headers() });
  if (!answer.ok) throw new Error((await answer.json()).detail);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Follow the events of an address until `signal` is aborted: read by fetch, since an EventSource
// cannot send a token. After an interruption it goes on from the last event that was seen.
async function follow(path, signal, heard, changed) {
  let last = null, pause = 500;
  while (!signal.aborted) {
    try {
      const answer = await fetch(path, { headers: headers(last ? { "Last-Event-ID": last } : {}), signal });
      if (!answer.ok) await checked(answer);
      changed("live");
      pause = 500;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
        for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
          const lines = text.slice(0, end).split("\n");
          const part = (name) => lines.find((line) => line.startsWith(name))?.slice(name.length);
          last = part("id: ") ?? last;
          const data = part("data: ");
          if (data) heard(JSON.parse(data));
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      changed(error.status === 401 ? "token" : "lost", error);
      if (error.status) pause = 5000;
    }
    if (signal.aborted) return;
    changed("lost");
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(2 * pause, 8000);
  }
}

// What the modules of the page use; in a notebook another object takes its place.
export const api = { get, post, download, follow, downloads: ["csv", "parquet"] };
export const study = (name, rest = "") => `/studies/${encodeURIComponent(name)}${rest}`;
