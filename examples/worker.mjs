// A worker in Node with no packages, written from docs/reference/worker-protocol.md.
//
//   BETIMES_URL=http://127.0.0.1:8090 BETIMES_API_KEY=btm_wk_… node examples/worker.mjs
//
// Has two handlers: `echo` returns its payload, `sum` adds up {"numbers": […]}.

const base = process.env.BETIMES_URL ?? "http://127.0.0.1:8090";
const key = process.env.BETIMES_API_KEY;
const queues = (process.env.BETIMES_QUEUES ?? "default").split(",");
const places = 5;

const handlers = {
  echo: async (payload) => payload,
  sum: async (payload, say) => {
    if (!Array.isArray(payload?.numbers)) throw new Error("expected numbers");
    await say("logs", { lines: [{ message: `adding ${payload.numbers.length} numbers` }] });
    return payload.numbers.reduce((total, number) => total + number, 0);
  },
};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const seconds = (text) => {
  const found = /^PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?$/.exec(text);
  return 3600 * (found[1] ?? 0) + 60 * (found[2] ?? 0) + Number(found[3] ?? 0);
};

class Refused extends Error {
  constructor(status, problem) {
    super(`${problem.code}: ${problem.detail ?? ""}`);
    this.status = status;
    this.code = problem.code;
  }
}

// One request; whatever may be temporary is asked again.
async function ask(path, body, patience = 15_000) {
  for (let tried = 1; ; tried += 1) {
    try {
      const answer = await fetch(base + path, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(patience),
      });
      if (answer.ok) return answer.status === 204 ? null : await answer.json();
      const problem = await answer.json();
      if (answer.status < 500 && answer.status !== 429) throw new Refused(answer.status, problem);
    } catch (error) {
      if (error instanceof Refused) throw error;
    }
    await pause(Math.random() * Math.min(5000, 100 * 2 ** tried));
  }
}

const held = new Map(); // lease id → { lost, cancelled }
let draining = false;
let worker;

async function register() {
  const told = await ask("/v1/workers", {
    name: `node-${process.pid}`, queues, slots: places, pid: process.pid,
    handlers: Object.keys(handlers), sdk: { name: "example-node" },
  });
  worker = { id: told.worker_id, ttl: seconds(told.lease_duration), beat: seconds(told.heartbeat_interval) };
}

async function beat() {
  const asked = performance.now();
  const running = [...held.keys()].map((lease_id) => ({ lease_id }));
  const told = await ask(`/v1/workers/${worker.id}/heartbeat`, { running, state: draining ? "draining" : "ok" });
  for (const { lease_id } of told.extended) if (held.has(lease_id)) held.get(lease_id).trusted = asked + 900 * worker.ttl;
  for (const lease of told.lost) if (held.has(lease)) held.get(lease).lost = true;
  for (const command of told.commands) {
    if (command.type === "drain") draining = true;
    if (command.type === "cancel" && held.has(command.lease_id)) held.get(command.lease_id).cancelled = true;
  }
}

async function beats() {
  while (!draining || held.size > 0) {
    try {
      await beat();
    } catch (error) {
      if (error.status !== 404) throw error;
      await register();
    }
    await pause(1000 * worker.beat);
  }
}

async function execute(run, asked) {
  const state = { trusted: asked + 900 * worker.ttl, lost: false, cancelled: false };
  held.set(run.lease_id, state);
  const say = (verb, body) => ask(`/v1/leases/${run.lease_id}/${verb}`, body);
  try {
    let verb, body;
    try {
      const limit = run.timeout ? 1000 * seconds(run.timeout) : 2 ** 31 - 1;
      let alarm;
      const late = new Promise((_, fail) => { alarm = setTimeout(() => fail(new Error("took too long")), limit); });
      const result = await Promise.race([handlers[run.handler](run.payload ?? null, say), late]).finally(() => clearTimeout(alarm));
      [verb, body] = ["complete", { result }];
    } catch (error) {
      if (error instanceof Refused) throw error;
      [verb, body] = ["fail", { error: { type: error.name, message: error.message, stack: error.stack ?? "" } }];
    }
    if (state.cancelled && verb !== "complete") [verb, body] = ["cancel", {}];
    if (!state.lost && performance.now() < state.trusted) await say(verb, body);
  } catch (error) {
    if (!(error instanceof Refused) || (error.code !== "lease_lost" && error.status !== 404)) throw error;
  } finally {
    held.delete(run.lease_id);
  }
}

async function work() {
  while (!draining) {
    const free = places - held.size;
    if (free === 0) { await pause(20); continue; }
    const asked = performance.now();
    try {
      const wait = worker.ttl / 3;
      const { runs } = await ask(`/v1/workers/${worker.id}/lease`, { max: free, wait }, 1000 * wait + 10_000);
      for (const run of runs) execute(run, asked);
    } catch (error) {
      if (error.code === "worker_draining") draining = true;
      else if (error.status === 404) await register();
      else throw error;
    }
  }
}

process.on("SIGTERM", () => { draining = true; beat().catch(() => {}); });
await register();
console.log(`registered as ${worker.id}`);
const beating = beats();
await work();
while (held.size > 0) await pause(20);
await ask(`/v1/workers/${worker.id}/leave`);
await Promise.race([beating, pause(100)]);
console.log("left");
process.exit(0);
