// graphile-worker, driven with the same modes as pgqueuer_peer.py: node graphile_peer.mjs MODE DSN ...
//
// The worker has the batching that its documentation recommends for throughput: a local queue, and
// completions without delay in batches.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(process.env.BENCH_PEERS + "/");
const { makeWorkerUtils, run } = require("graphile-worker");
const [mode, connectionString, ...rest] = process.argv.slice(2);
const now = () => (performance.timeOrigin + performance.now()) / 1000;

const FILL = `
SELECT graphile_worker.add_jobs(array(
  SELECT json_populate_record(null::graphile_worker.job_spec, json_build_object(
    'identifier', 'note', 'payload', $2::json, 'run_at', $3::timestamptz))
  FROM generate_series(1, $1::int)))`;

async function withUtils(act) {
  const utils = await makeWorkerUtils({ connectionString, logger: quiet() });
  try {
    await act(utils);
  } finally {
    await utils.release();
  }
}

function quiet() {
  const { Logger } = require("graphile-worker");
  return new Logger(() => (level, message) => {
    if (level === "error") console.error(message);
  });
}

async function fill(count, due) {
  const payload = JSON.stringify(due ? { wanted: Number(due) } : {});
  const runAt = due ? new Date(Number(due) * 1000).toISOString() : null;
  await withUtils((utils) =>
    utils.withPgClient((client) => client.query(FILL, [Number(count), payload, runAt])));
}

async function enqueue(count, pause) {
  await withUtils(async (utils) => {
    for (let number = 0; number < Number(count); number++) {
      await sleep(Number(pause) * 1000);
      await utils.addJob("note", { wanted: now() });
    }
  });
}

async function work(file, concurrency) {
  const notes = [];
  const runner = await run({
    connectionString,
    logger: quiet(),
    noHandleSignals: true,
    preset: {
      worker: {
        concurrentJobs: Number(concurrency),
        localQueue: { size: 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    taskList: {
      note: async (payload) => {
        const started = now();
        const wanted = payload.wanted ?? started;
        notes.push(wanted, started - wanted);
      },
    },
  });
  process.on("SIGTERM", async () => {
    await runner.stop();
    writeFileSync(file, Buffer.from(Float64Array.from(notes).buffer));
    process.exit(0);
  });
  console.log("ready");
}

if (mode === "install") await withUtils((utils) => utils.migrate());
else if (mode === "fill") await fill(...rest);
else if (mode === "enqueue") await enqueue(...rest);
else await work(...rest);
