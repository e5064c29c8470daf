// bench.mjs fill|consume HOST PORT MESSAGES CONCURRENCY
// fill adds the bodies on standard input, one a line, as jobs; consume runs a worker until all are completed and
// prints {"handled":n,"seconds":s}. Completed jobs are removed, as an acked message is.
import { Queue, Worker } from 'bullmq';
import Redis from 'ioredis';
import { createInterface } from 'node:readline';

const [mode, host, port, messages, concurrency] = process.argv.slice(2);
const connection = new Redis({ host, port: Number(port), maxRetriesPerRequest: null });
const total = Number(messages);

if (mode === 'fill') {
  const queue = new Queue('orders', { connection });
  let batch = [];
  for await (const body of createInterface({ input: process.stdin })) {
    batch.push({ name: 'order', data: JSON.parse(body), opts: { removeOnComplete: true } });
    if (batch.length === 1000) {
      await queue.addBulk(batch);
      batch = [];
    }
  }
  if (batch.length > 0) await queue.addBulk(batch);
  await queue.close();
  connection.disconnect();
} else {
  let handled = 0;
  let orders = 0;
  const started = process.hrtime.bigint();
  const worker = new Worker('orders', async (job) => { orders += job.data.data.order_id; }, { connection, concurrency: Number(concurrency) });
  await new Promise((resolve) => worker.on('completed', () => { if (++handled === total) resolve(); }));
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  console.log(JSON.stringify({ handled, seconds }));
  await worker.close();
  connection.disconnect();
}
