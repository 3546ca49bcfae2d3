import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { startProcess } from '@etude/test-support/processes';
import { factsData } from './facts-data.js';
import { percentile, repeat, round, summaryLine, timed } from './figures.js';
import { processTree, proportionalMiB, readProcesses } from './proc.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const MAIN = join(ROOT, 'apps/cli/dist/main.js');
const SCRIPT = join(ROOT, 'bench/src/instant.yaml');
/** Time for background work to end. */
const REST_MS = 15_000;
const DOCUMENT_BYTES = 2_000_000;
const PART_BYTES = 1_000_000;
const SEARCHES = 200;
const PROSE = /^[A-Z][A-Za-z ,;:'()-]{20,}\.$/;

const say = (text: string) => process.stderr.write(`${text}\n`);

interface Stack {
  readonly pid: number;
  readonly memory: ServiceClient<typeof Memory>;
}

/**
 * `etude bench local [--json]`: the cost of a stack that `etude up` starts, with the installed embedder. Measures the memory of its processes
 * at rest and after 500 facts, facts and searches over gRPC, and a document of 2 MB with searches of another user meanwhile.
 */
export async function run(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { json: { type: 'boolean' } } });
  const home = mkdtempSync(join(tmpdir(), 'etude-local-'));
  // A SIGTERM without a handler would skip the exit handler that ends the stack.
  process.once('SIGTERM', () => process.exit(143));
  const env = Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined));
  const up = await startProcess({ args: [MAIN, 'up', '--scripted', SCRIPT, '--home', home], env, ready: 'Ctrl-C stops it' });
  try {
    const [, address = ''] = /^gateway +(\S+)$/m.exec(up.output()) ?? [];
    const apiKey = readFileSync(join(home, 'key'), 'utf8').trim();
    const memory = createServiceClient(Memory, address, { apiKey });
    const [, supervisor] = processTree(up.pid);
    const figures = await measure({ pid: supervisor ?? 0, memory });
    memory.close();
    if (!values.json) for (const [name, value] of Object.entries(figures)) process.stdout.write(`${name.padEnd(34)} ${value}\n`);
    process.stdout.write(`${summaryLine('local', figures)}\n`);
    return 0;
  } finally {
    await up.stop();
    rmSync(home, { recursive: true });
  }
}

function memoryOf(supervisor: number) {
  const pids = processTree(supervisor);
  return { pssMiB: proportionalMiB(pids), rssMiB: readProcesses(pids).rssMiB };
}

/** Durations of calls one after the other, and the stack's processor time per call. */
async function calls(supervisor: number, n: number, call: (i: number) => Promise<unknown>) {
  const before = readProcesses(processTree(supervisor)).cpuSeconds;
  const ms = await repeat(n, call);
  return { ms, cpuMs: ((readProcesses(processTree(supervisor)).cpuSeconds - before) * 1_000) / n };
}

async function measure({ pid, memory }: Stack): Promise<Record<string, number>> {
  say('at rest ...');
  await sleep(REST_MS);
  const idle = memoryOf(pid);
  say('500 facts ...');
  const { experiences } = factsData();
  const store = (user: string) => (i: number) =>
    memory.storeFact({ agent: 'bench', user, text: `${experiences[i]?.text} (${i})`, requestId: `${user}-${i}` });
  const stored = await calls(pid, experiences.length, store('ann'));
  const storedKnown = await calls(pid, 100, store('ben'));
  say('searches ...');
  const search = (user: string, kind: string) => (i: number) =>
    memory.searchMemory({ agent: 'bench', user, query: `${kind}: what was told about number ${i}?`, limit: 5 });
  const searched = await calls(pid, SEARCHES, search('ann', 'new'));
  const searchedKnown = await calls(pid, SEARCHES, search('ann', 'new'));
  await sleep(REST_MS);
  const after = memoryOf(pid);
  say('a document of 2 MB ...');
  const alone = await repeat(SEARCHES, search('ben', 'alone'));
  const over = new AbortController();
  const importing = calls(pid, 1, () => memory.importDocument(partsOf(book()))).finally(() => over.abort());
  const during: number[] = [];
  for (let i = 0; !over.signal.aborted; i += 1) during.push(await timed(() => search('ben', 'meanwhile')(i)));
  const { ms, cpuMs } = await importing;
  return {
    idle_pss_mib: round(idle.pssMiB, 0),
    idle_rss_mib: round(idle.rssMiB, 0),
    after_500_facts_pss_mib: round(after.pssMiB, 0),
    after_500_facts_rss_mib: round(after.rssMiB, 0),
    ...timesOf('store', stored),
    ...timesOf('store_known', storedKnown),
    ...timesOf('search', searched),
    ...timesOf('search_known', searchedKnown),
    import_2mb_s: round(percentile(ms, 50) / 1_000, 1),
    import_2mb_cpu_s: round(cpuMs / 1_000, 1),
    search_p95_ms: round(percentile(alone, 95)),
    search_p95_ms_while_importing: round(percentile(during, 95)),
  };
}

function timesOf(name: string, { ms, cpuMs }: { readonly ms: readonly number[]; readonly cpuMs: number }): Record<string, number> {
  return { [`${name}_p50_ms`]: round(percentile(ms, 50)), [`${name}_cpu_ms`]: round(cpuMs) };
}

/** A long document: sentences of this checkout's pages in chapters of 40. Repeats have another order, so no two passages are equal. */
function book(): Buffer {
  const pages = globSync('{docs/**/*,*}.md', { cwd: ROOT }).toSorted();
  const whole = pages.map((page) => readFileSync(join(ROOT, page), 'utf8').replaceAll(/\s+/g, ' ').replaceAll(/[`*]/g, ''));
  const sentences = whole.flatMap((text) => text.split(/(?<=\.) /)).filter((sentence) => PROSE.test(sentence));
  const parts: string[] = [];
  for (let i = 0, length = 0; length < DOCUMENT_BYTES; i += 1) {
    const at = (i * 7 + Math.floor(i / sentences.length) * 13 + (i % 11) * 3) % sentences.length;
    const part = `${i % 40 === 0 ? `\n\n# Chapter ${i / 40}\n\n` : ''}${sentences[at]} `;
    parts.push(part);
    length += part.length;
  }
  return Buffer.from(parts.join('').slice(0, DOCUMENT_BYTES));
}

async function* partsOf(bytes: Buffer) {
  yield { part: { case: 'head' as const, value: { name: 'book.md', agent: 'bench', user: 'ann' } } };
  for (let at = 0; at < bytes.byteLength; at += PART_BYTES)
    yield { part: { case: 'data' as const, value: bytes.subarray(at, at + PART_BYTES) } };
}
