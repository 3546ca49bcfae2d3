import { timestampMs } from '@bufbuild/protobuf/wkt';
import type {
  Document,
  ErasureReceipt,
  MemoryHit,
  MemoryRecord,
  MemoryStats,
  RecallResponse,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { firstLine, table } from '../output.js';
import { SCRIPTED } from '../tasks/task-lines.js';

const isRank = (name: string) => name.endsWith('Rank') || name === 'rerank' || name === 'rerankFailed';

const best = (hits: readonly MemoryHit[]) => Math.max(...hits.map(({ score }) => score));

/** Under a heading for each layer, that with the best score first. The order within a layer is the search's. */
export function hitLines(hits: readonly MemoryHit[]): string {
  const layers = [...Map.groupBy(hits, ({ layer }) => layer)];
  return layers
    .toSorted(([, a], [, b]) => best(b) - best(a))
    .flatMap(([layer, of]) => [`${layer}:`, ...of.map(hitText)])
    .join('\n');
}

const whose = ({ agent, user }: { readonly agent: string; readonly user: string }) => [
  ...(agent === '' ? [] : [`agent ${agent}`]),
  ...(user === '' ? [] : [`user ${user}`]),
];

/** What is recalled as facts is of several kinds. */
const KNOWLEDGE: Readonly<Record<string, string>> = { fact: 'facts', chunk: 'parts of documents', reflection: 'reflections' };

/** Under a heading for each kind of knowledge, then experiences, then procedures. */
export function recallLines({ facts, experiences, procedures }: Pick<RecallResponse, 'facts' | 'experiences' | 'procedures'>): string {
  const knowledge = [...Map.groupBy(facts, ({ kind }) => KNOWLEDGE[kind] ?? kind)];
  return [...knowledge, ['experiences', experiences] as const, ['procedures', procedures] as const]
    .flatMap(([heading, hits]) => (hits.length > 0 ? [`${heading}:`, ...hits.map(hitText)] : []))
    .join('\n');
}

export function hitText(hit: MemoryHit): string {
  const { id, layer, kind, title, text, similarity, score, scripted, explanation, origins, untrustedOrigins } = hit;
  const parts = Object.entries(explanation).map(([name, value]) => `${name} ${isRank(name) ? value : value.toFixed(3)}`);
  const lines = [
    [
      `${layer} ${kind} ${id}`,
      ...whose(hit),
      `similarity ${similarity.toFixed(2)}`,
      `score ${score.toFixed(3)}`,
      [firstLine(title, 60), ...(scripted ? [SCRIPTED] : [])].join(' '),
    ].join('  '),
    `  ${firstLine(text, 110)}`,
  ];
  if (parts.length > 0) lines.push(`  score: ${parts.join(', ')}`);
  const named = origins.map((origin) => (untrustedOrigins.includes(origin) ? `${origin} (not trusted)` : origin));
  if (named.length > 0) lines.push(`  from: ${named.slice(0, 5).join(', ')}${named.length > 5 ? ', …' : ''}`);
  return lines.join('\n');
}

const text = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Every field on a line of its own; those that say nothing are left out. */
export function recordText({ id, layer, kind, agent, user, createTime, fields }: MemoryRecord): string {
  const head = `${layer} ${kind} ${id}`;
  const of = [...whose({ agent, user }), createTime ? new Date(timestampMs(createTime)).toISOString() : ''];
  const shown = Object.entries(fields ?? {}).filter(([name, value]) => tells(name, value));
  return [head, `  ${of.filter((one) => one !== '').join('  ')}`, ...shown.map(([name, value]) => `  ${name}: ${text(value)}`)].join('\n');
}

const SHOWN_ABOVE: ReadonlySet<string> = new Set(['id', 'scope', 'created_at']);

function tells(name: string, value: unknown): boolean {
  return !SHOWN_ABOVE.has(name) && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

export function documentTable(documents: readonly Document[]): string {
  const rows = documents.map(({ id, name, title, chunks, bytes }) => [id, String(chunks), String(bytes), name, title]);
  return table([['ID', 'CHUNKS', 'BYTES', 'NAME', 'TITLE'], ...rows]);
}

export function statsText({ adapter, embeddingModel, dimension, layers, diskBytes, memoryBytes }: MemoryStats): string {
  const rows = layers.map(({ layer, kind, records, archived }) => [layer, kind, String(records), String(archived)]);
  const sizes = [diskBytes > 0n ? `${mib(diskBytes)} MiB on disk` : '', memoryBytes > 0n ? `${mib(memoryBytes)} MiB in memory` : ''].filter(
    (size) => size !== '',
  );
  return [
    `${adapter}, vectors of ${embeddingModel} with ${dimension} numbers${sizes.length > 0 ? `; ${sizes.join(', ')}, of all tenants` : ''}`,
    table([['LAYER', 'KIND', 'RECORDS', 'ARCHIVED'], ...rows]),
    ...(layers.some(({ kind }) => kind === 'applied')
      ? ['applied: notes of writes that are done, by which a repeat is known; no memories']
      : []),
  ].join('\n');
}

const mib = (bytes: bigint) => (Number(bytes) / 1_048_576).toFixed(1);

export function receiptText({ id, state, removed, left, notes, error }: ErasureReceipt): string {
  const places = Object.keys({ ...removed, ...left }).toSorted();
  const rows = places.map((place) => [place, String(removed[place] ?? 0), String(left[place] ?? 0)]);
  return [
    `erasure ${id}: ${state}`,
    ...(rows.length > 0 ? [table([['PLACE', 'REMOVED', 'LEFT'], ...rows])] : []),
    ...notes.map((note) => `- ${note}`),
    ...(error === '' ? [] : [`failed: ${error}`]),
  ].join('\n');
}
