import { parseArgs } from 'node:util';
import { SandboxTemplates } from '@etude/sandbox/kubernetes/sandbox-template';
import { MachineLacks } from '@etude/test-cluster/machine';
import { round, summaryLine } from './figures.js';
import { startSimulatedCluster } from './scale-cluster.js';
import { measureSize, type Row, type ScaleSettings } from './scale-sizes.js';

const NODES = 1_000;
const WHOLE: ScaleSettings = { idleSeconds: 60, claims: 300, claimsPerSecond: 10, startsMax: 50, controllers: 3 };
const QUICK: ScaleSettings = { ...WHOLE, idleSeconds: 5, claims: 50 };
/** The image is never pulled, because simulated pods run no code. */
const TEMPLATES = { default: { image: 'simulated', cpuRequest: '5m', memoryMiB: 256 } };

const say = (text: string) => void process.stderr.write(`${text}\n`);

const line = (first: string, rest: readonly unknown[]) => first.padEnd(32) + rest.map((one) => String(one).padStart(11)).join('');

function table(columns: ReadonlyMap<number, Row>): string {
  const names = [...new Set([...columns.values()].flatMap((row) => Object.keys(row)))];
  const rows = names.map((name) =>
    line(
      name,
      [...columns.values()].map((row) => round(row[name] ?? Number.NaN)),
    ),
  );
  return `${[line('pods', [...columns.keys()]), ...rows].join('\n')}\n`;
}

/**
 * `etude bench scale [--pods 100,1000,5000] [--nodes 1000] [--controllers 3] [--json] [--quick]`: measures one and several controllers with
 * pools of these sizes on a real control plane. kwok simulates the nodes and pods, so they run no code.
 */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      json: { type: 'boolean' },
      quick: { type: 'boolean' },
      pods: { type: 'string', default: '100,1000,5000' },
      nodes: { type: 'string', default: String(NODES) },
      controllers: { type: 'string', default: String(WHOLE.controllers) },
    },
  });
  const sizes = values.pods.split(',').map(Number);
  if (sizes.length === 0 || sizes.some((pods) => !Number.isInteger(pods) || pods < 1 || pods > 9_000)) {
    say(`--pods is numbers from 1 to 9000, such as 100,1000, not "${values.pods}"`);
    return 2;
  }
  const controllers = Number(values.controllers);
  if (!Number.isInteger(controllers) || controllers < 1) {
    say(`--controllers is a number from 1 on, not "${values.controllers}"`);
    return 2;
  }
  const { default: template = {} } = SandboxTemplates.parse(TEMPLATES);
  const cluster = await startSimulatedCluster(Number(values.nodes), say).catch((error: unknown) => {
    if (!(error instanceof MachineLacks)) throw error;
    say(error.message);
    return null;
  });
  if (!cluster) return 1;
  try {
    const columns = new Map<number, Row>();
    const unfinished: string[] = [];
    const settings = { ...(values.quick ? QUICK : WHOLE), controllers };
    for (const pods of sizes) {
      const { row, problem } = await measureSize(cluster, pods, settings, { ...template }, say);
      columns.set(pods, row);
      if (problem !== null) unfinished.push(`${pods} pods: ${problem}`);
      // Printed at once, so that a failure of the next size loses nothing.
      say(table(new Map([[pods, row]])));
    }
    if (!values.json) process.stdout.write(table(columns));
    const figures = [...columns].flatMap(([pods, row]) => Object.entries(row).map(([name, value]) => [`p${pods}_${name}`, round(value)]));
    process.stdout.write(`${summaryLine('scale', Object.fromEntries(figures) as Record<string, number>)}\n`);
    for (const one of unfinished) say(`not finished: ${one}`);
    return unfinished.length > 0 ? 1 : 0;
  } finally {
    await cluster.close();
  }
}
