import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { RunAssembly } from '@etude/sandbox/driven-sandboxes';
import { newClaim } from '@etude/sandbox/supervisor-client';
import { execution, FirstByte, never, SHAPE } from './sandbox-claims.js';
import { ChildTask, type Endpoint } from './sandbox-child.js';
import { type DriverChoice, startDriver } from './sandbox-drivers.js';

const answer = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
const told = () => once(process.stdin, 'data');
const TIMES = { connectTimeoutMs: 5_000, helloTimeoutMs: 5_000 };
const LEASE_MS = 60_000;

/** Prints the code's process namespace, which differs between sandboxes. */
const WHO = 'import os\nprint(os.readlink("/proc/self/ns/pid"))';

async function hold(choice: DriverChoice): Promise<void> {
  const { driver } = await startDriver(choice);
  const sandbox = await driver.claim(SHAPE, never());
  const who = new RunAssembly();
  await sandbox.execute(execution(WHO, { keep: true }), who, never());
  const sink = new FirstByte();
  void sandbox.execute(execution('print("on", flush=True)\nwhile True: pass', { keep: true }), sink, never());
  await sink.heard;
  answer({ place: sandbox.place, namespace: who.results[0]?.stdout.trim(), own: readlinkSync('/proc/self/ns/pid') });
}

async function claim(choice: DriverChoice, count: number): Promise<void> {
  const { driver } = await startDriver(choice);
  answer('ready');
  await told();
  const sandboxes = await Promise.all(Array.from({ length: count }, () => driver.claim(SHAPE, never())));
  const namespaces = sandboxes.map(async (sandbox) => {
    const who = new RunAssembly();
    await sandbox.execute(execution(WHO), who, never());
    return who.results[0]?.stdout.trim();
  });
  answer(await Promise.all(namespaces));
  await told();
  await Promise.all(sandboxes.map((sandbox) => sandbox.release()));
  answer('released');
}

async function bind(endpoints: readonly Endpoint[], claimsEach: number): Promise<void> {
  const { PodLink } = await import('@etude/sandbox/kubernetes/pod-link');
  const links = await Promise.all(endpoints.map((endpoint) => PodLink.open(endpoint, TIMES, never())));
  answer('ready');
  await told();
  const bound = links.map(async (link, at) => {
    let given = 0;
    for (let i = 0; i < claimsEach; i++) {
      const { outcome } = await link.bind(newClaim(), endpoints[at]?.token ?? '', LEASE_MS, 30_000);
      if (outcome === 'bound') given += 1;
      else if (outcome !== 'claimed') throw new Error(`a bind was answered with ${outcome}`);
    }
    link.abandon();
    return given;
  });
  answer(await Promise.all(bound));
}

const task = ChildTask.parse(JSON.parse(process.argv[2] ?? ''));
if (task.do === 'hold') await hold(task.choice);
else if (task.do === 'claim') await claim(task.choice, task.count);
else await bind(task.endpoints, task.claimsEach);
