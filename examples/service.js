// A worker in JavaScript, for a study that `partita serve` keeps: it needs Node 18, not Partita.
// node examples/service.js [ADDRESS] [EVALUATIONS]
const [base = "http://127.0.0.1:8420", evals = "40"] = process.argv.slice(2);
const token = process.env.PARTITA_TOKEN;

async function send(path, body, patience = 60) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() };
  if (token) headers.Authorization = `Bearer ${token}`;
  const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  for (let waited = 0; ; waited += 1) {
    try {
      const answer = await fetch(base + path, request);
      const content = await answer.json();
      if (answer.ok) return content;
      throw Object.assign(new Error(content.detail), { final: true });
    } catch (error) {
      if (error.final || waited >= patience) throw error; // the same key makes it the same request
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
}

// What is tuned: how long a request waits, by the number of threads and the size of the cache.
function latency({ threads, cache }) {
  const noise = Math.random() + Math.random() - 1;
  return 4 + 0.2 * (threads - 12) ** 2 + 2 * Math.abs(Math.log2(cache / 64)) + noise;
}

async function main() {
  const space = { parameters: [["threads", [1, 32, "int"]], ["cache", [1, 1024, "log"]]] };
  await send("/studies", { name: "latency", space });
  for (let i = 0; i < Number(evals); i += 1) {
    const { trials: [trial] } = await send("/studies/latency/ask", {});
    await send("/studies/latency/tell", { number: trial.number, value: latency(trial.params) });
  }
  const { params, mean } = await send("/studies/latency/recommend");
  console.log(`threads ${params.threads}, cache ${params.cache.toFixed(1)}: ${mean.toFixed(2)} ms`);
}

main();
