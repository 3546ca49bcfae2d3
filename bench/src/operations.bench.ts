import { parseArgs } from 'node:util';
import { failoverFigures } from './failover-figures.js';
import { fairFigures } from './fair-figures.js';
import { summaryLine } from './figures.js';
import { traceFigures } from './trace-figures.js';

interface Part {
  readonly says: string;
  /** @param scale 1; less with `--quick` */
  readonly measure: (scale: number) => Promise<Record<string, number>>;
}

const PARTS: Readonly<Record<string, Part>> = {
  fair: { says: 'a quiet tenant beside a loud one ...', measure: (scale) => fairFigures(60 * scale, 1_000 * scale) },
  failover: { says: "the death of Redis' primary ...", measure: (scale) => failoverFigures(Math.ceil(5 * scale)) },
  traces: { says: 'rollouts with and without traces ...', measure: (scale) => traceFigures(30 * scale) },
};

/** `etude bench operations [PART...] [--json] [--quick]`: measures what running Etude for many tenants costs. Runs all parts by default. */
export async function run(args: readonly string[]): Promise<number> {
  const options = { json: { type: 'boolean' }, quick: { type: 'boolean' } } as const;
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  const figures: Record<string, number> = {};
  for (const [name, { says, measure }] of Object.entries(PARTS)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    process.stderr.write(`${says}\n`);
    Object.assign(figures, await measure(values.quick ? 0.2 : 1));
  }
  process.stdout.write(`${summaryLine('operations', figures)}\n`);
  return 0;
}
