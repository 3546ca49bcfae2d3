import { statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { percentile, round, summaryLine } from './figures.js';
import { MemoryData } from './memory-data.js';
import { conversationFigures } from './memory-conversations.js';
import { factsFigures } from './memory-facts.js';
import { growTo, pairedRatio, queriesOf, searchAll, type SearchTimes } from './memory-growth.js';
import { qdrantSides, QueryVectors, type Sides, sqliteSides } from './memory-sides.js';
import { retrievalFigures } from './memory-retrieval.js';
import { toldFigures } from './memory-told.js';

/** Default sizes. A million records need --sizes, because they take over a quarter of an hour and 5 GB. */
const SIZES = [1_000, 10_000, 100_000];
const QUICK_SIZES = [1_000, 10_000];
/** Number of records to which the aims apply. */
const AIM_SIZE = 100_000;
/** The disk space that both stores together take per record. */
const DISK_BYTES_PER_RECORD = 8_000;
const MEMORY_BYTES_MIN = 1_000_000_000;

const say = (text: string) => process.stderr.write(`${(performance.now() / 1_000).toFixed(0).padStart(5)} s  ${text}\n`);

interface SizeFigures {
  readonly size: number;
  readonly inserts: Readonly<Record<string, number>>;
  readonly large: SearchTimes;
  readonly small: SearchTimes;
  readonly residentMiB: number | null;
  readonly disk: { readonly ours: number | null; readonly bare: number | null };
}

/**
 * `etude bench memory [--adapter sqlite|qdrant] [--sizes N,...] [--json] [--quick]`: compares searches and inserts with the bare store.
 * Default sizes: 1,000, 10,000 and 100,000 records. Prints each measurement with its duration. `--told`: measures only facts in free
 * wording. `--conversations`: measures only questions about dialogues.
 */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      adapter: { type: 'string', default: 'sqlite' },
      sizes: { type: 'string' },
      json: { type: 'boolean' },
      quick: { type: 'boolean', default: false },
      told: { type: 'boolean', default: false },
      conversations: { type: 'boolean', default: false },
    },
  });
  const { adapter } = values;
  const only = values.told ? toldFigures : values.conversations ? conversationFigures : null;
  if (only !== null) {
    process.stdout.write(`${summaryLine('memory', await only(say))}\n`);
    return 0;
  }
  if (adapter !== 'sqlite' && adapter !== 'qdrant') return refused(`--adapter is sqlite or qdrant, not "${adapter}"`);
  const asked = values.sizes?.split(',').map(Number);
  if (asked?.some((size) => !Number.isInteger(size) || size < 1)) return refused('--sizes are whole numbers with commas in between');
  const embedder = new QueryVectors();
  const sides = adapter === 'sqlite' ? await sqliteSides(embedder) : await qdrantSides(embedder);
  try {
    say(sides.what);
    const sizes = (asked ?? usualSizes(sides, values.quick)).toSorted((a, b) => a - b).filter(suffices);
    if (!values.json) process.stdout.write(introduction(sides));
    const found: SizeFigures[] = [];
    for await (const one of measured(sides, embedder, sizes, values.quick)) {
      found.push(one);
      if (!values.json) process.stdout.write(rowsOf(one).join(''));
    }
    const quality =
      sides.real && !values.quick ? await retrievalFigures(adapter, say) : leftOut('retrieval quality (see etude bench retrieval)');
    const facts = sides.real
      ? { ...(await factsFigures(adapter, say)), ...(await toldFigures(say)) }
      : leftOut('what becomes of told facts');
    const talks = sides.real && !values.quick ? await conversationFigures(say) : leftOut('questions about dialogues');
    const figures = { ...(sides.real ? {} : { stand_in: 1 }), ...figuresOf(found), ...quality, ...facts, ...talks };
    if (!values.json) process.stdout.write(lists(quality, facts, talks).join(''));
    process.stdout.write(`${summaryLine('memory', figures)}\n`);
    return 0;
  } finally {
    await sides.close();
  }
}

/** Notes a part that is left out: a quick run has no time for it, and a stand-in would need a quarter of an hour. */
function leftOut(what: string): Record<string, number> {
  say(`left out: ${what}`);
  return {};
}

function refused(why: string): number {
  say(why);
  return 2;
}

function usualSizes({ real }: Sides, quick: boolean): readonly number[] {
  return real && !quick ? SIZES : QUICK_SIZES;
}

function suffices(size: number): boolean {
  const { bavail, bsize } = statfsSync(tmpdir());
  const fits = bavail * bsize > size * DISK_BYTES_PER_RECORD && (size < 1_000_000 || freemem() > MEMORY_BYTES_MIN);
  if (!fits) say(`${size} records are left out: ${tmpdir()} or the machine's memory has no room for them`);
  return fits;
}

/** Yields each size as soon as it is measured. The stores grow from one size to the next. */
async function* measured(sides: Sides, embedder: QueryVectors, sizes: readonly number[], quick: boolean): AsyncGenerator<SizeFigures> {
  const data = new MemoryData();
  const both = { ours: sides.ours, bare: sides.bare };
  let before = 0;
  for (const size of sizes) {
    say(`${size} records: writing ...`);
    const inserts = await growTo(data, both, before, size, (done) => say(`${size} records: ${done} written`));
    before = size;
    const queries = queriesOf(data, size, quick || !sides.real || size > AIM_SIZE ? 100 : 400);
    embedder.know(queries);
    say(`${size} records: searching, ${queries.length} queries ...`);
    const times = await searchAll(queries, both);
    say(`${size} records: looking at memory and disk ...`);
    yield { size, inserts, ...times, residentMiB: await sides.resident(size), disk: await sides.disk() };
  }
}

function aimed(found: readonly SizeFigures[]): SizeFigures | undefined {
  return found.findLast(({ size }) => size <= AIM_SIZE) ?? found[0];
}

const ratioTo = (times: SearchTimes, name: string) => round(pairedRatio(times['ours'] ?? [], times[name] ?? []));

const allTimes = ({ large, small }: Pick<SizeFigures, 'large' | 'small'>, name: string) => [...(large[name] ?? []), ...(small[name] ?? [])];

function figuresOf(found: readonly SizeFigures[]): Record<string, number> {
  const at = aimed(found);
  if (at === undefined) return {};
  const ours = allTimes(at, 'ours');
  const figures: Record<string, number> = {
    records: at.size,
    search_p50_ms: round(percentile(ours, 50)),
    search_p95_ms: round(percentile(ours, 95)),
    search_vs_bare_ratio: round(pairedRatio(ours, allTimes(at, 'bareHybrid'))),
    search_vs_bare_dense_ratio: round(pairedRatio(ours, allTimes(at, 'bareDense'))),
    search_large_tenant_vs_bare_ratio: ratioTo(at.large, 'bareHybrid'),
    search_large_tenant_vs_bare_dense_ratio: ratioTo(at.large, 'bareDense'),
    insert_vs_bare_ratio: round((at.inserts['ours'] ?? Number.NaN) / (at.inserts['bare'] ?? Number.NaN)),
  };
  for (const one of found) {
    const name = sizeName(one.size);
    figures[`search_p50_ms_${name}`] = round(percentile(allTimes(one, 'ours'), 50));
    figures[`search_p95_ms_${name}`] = round(percentile(allTimes(one, 'ours'), 95));
    figures[`inserts_per_s_${name}`] = round(one.inserts['ours'] ?? Number.NaN, 0);
    if (one.residentMiB !== null) figures[`resident_mib_${name}`] = round(one.residentMiB, 0);
    if (one.disk.ours !== null) figures[`disk_mib_${name}`] = round(one.disk.ours / 2 ** 20, 0);
  }
  return figures;
}

function sizeName(size: number): string {
  if (size % 1_000_000 === 0) return `${size / 1_000_000}m`;
  return size % 1_000 === 0 ? `${size / 1_000}k` : String(size);
}

function introduction({ what, real }: Sides): string {
  const warning = real ? '' : "These are figures of the tests' stand-in, with routes in Python. They are not those of a Qdrant server.\n";
  return `${what}\n${warning}Milliseconds p50 / p95, ratios of pairs. bareDense: vectors alone. bareHybrid: both lists, fused.\n\n`;
}

function rowsOf({ size, inserts, large, small, residentMiB, disk }: SizeFigures): string[] {
  const rates = Object.entries(inserts).map(([name, rate]) => `${name} ${round(rate, 0)}/s`);
  const resident = residentMiB === null ? '' : `, ${round(residentMiB, 0)} MiB resident`;
  return [
    `${size} records: inserts ${rates.join(', ')}; disk ours ${mibOf(disk.ours)}, bare ${mibOf(disk.bare)}${resident}\n`,
    ...timesOf('the tenant with a tenth of all', large),
    ...timesOf('the other 49 tenants', small),
    '\n',
  ];
}

function lists(...some: ReadonlyArray<Readonly<Record<string, number>>>): string[] {
  return some.flatMap((figures) => Object.entries(figures).map(([name, value]) => `${name.padEnd(40)} ${value}\n`));
}

function mibOf(bytes: number | null): string {
  return bytes === null ? 'unknown' : `${round(bytes / 2 ** 20, 0)} MiB`;
}

function timesOf(whose: string, times: SearchTimes): string[] {
  return Object.entries(times).map(([name, ms]) => {
    const ratio = name === 'ours' ? '' : `   ours is ${round(pairedRatio(times['ours'] ?? [], ms))} of it`;
    return `  ${whose.padEnd(32)}${name.padEnd(12)}${percentile(ms, 50).toFixed(2).padStart(8)} / ${percentile(ms, 95).toFixed(2).padStart(8)}${ratio}\n`;
  });
}
