import type { RecallRequest as RecallMessage, SearchMemoryRequest } from '@etude/contracts/gen/etude/v1/memory_pb';
import { MemoryLayer } from '@etude/contracts/task';
import { VisibleText } from '@etude/contracts/visible-text';
import type { LayerQuery, RecallRequest } from '@etude/memory/memory';
import { RECORD_KINDS } from '@etude/memory/record-store';
import { z } from 'zod';
import { boundedCount, invalidField, parseField } from '../wire/validation.js';

const LIMIT = { max: 100, standard: 5 };
const TOKENS = { max: 100_000, standard: 2_000 };
const IMPORTANCE_MIN = 0.3;
const SUCCESS_RATE_MIN = 0.6;
/** Facts, experiences, procedures. */
const COUNT_MAX = 100;

const Text = VisibleText.max(100_000, 'must not be longer than 100000 characters');
const Layers = z.array(z.enum(MemoryLayer.options, { error: `must be one of ${MemoryLayer.options.join(', ')}` }));
const SEARCHED = ['transition', 'episode', 'fact', 'summary', 'reflection', 'chunk', 'skill'] as const;
const Kinds = z.array(z.enum(SEARCHED, { error: `must be one of ${SEARCHED.join(', ')}` }));
const Fraction = z.number().min(0).max(1).optional();
const Category = z.string().max(200);

export interface CheckedSearch {
  readonly layers: readonly MemoryLayer[];
  readonly queryOf: (layer: MemoryLayer) => LayerQuery;
}

/** @throws EtudeError INVALID_ARGUMENT naming the field */
export function checkedSearch(request: SearchMemoryRequest): CheckedSearch {
  const text = parseField(Text, request.query, 'query');
  const asked = new Set(parseField(Layers, request.layers, 'layers'));
  const kinds = parseField(Kinds, request.kinds, 'kinds');
  const limit = boundedCount(request.limit, 'limit', LIMIT);
  const similarityMin = fraction(request.similarityMin, 'similarity_min') ?? 0;
  const importanceMin = fraction(request.importanceMin, 'importance_min');
  const successRateMin = fraction(request.successRateMin, 'success_rate_min');
  const category = parseField(Category, request.category, 'category');
  const { explain, archived, rerank } = request;
  const layers = layersOf(asked.size > 0 ? [...asked] : MemoryLayer.options, kinds);
  const only = layers.length === 1 ? layers[0] : null;
  const lowest: Readonly<Record<MemoryLayer, number | undefined>> = {
    episodic: importanceMin ?? (only === 'episodic' ? IMPORTANCE_MIN : undefined),
    semantic: undefined,
    procedural: successRateMin ?? (only === 'procedural' ? SUCCESS_RATE_MIN : undefined),
  };
  const queryOf = (layer: MemoryLayer): LayerQuery => ({
    text,
    limit,
    similarityMin,
    explain,
    archived,
    rerank,
    ...(kinds.length > 0 ? { kinds: kinds.filter((kind) => isOf(layer, kind)) } : {}),
    ...(lowest[layer] === undefined ? {} : { worthMin: lowest[layer] }),
    ...(category !== '' && layer === 'semantic' ? { category } : {}),
  });
  return { layers, queryOf };
}

/** @throws EtudeError INVALID_ARGUMENT naming the field */
export function checkedRecall(request: RecallMessage): RecallRequest {
  return {
    context: parseField(Text, request.context, 'context'),
    tokensMax: boundedCount(request.tokensMax, 'tokens_max', TOKENS),
    ...count(request.facts, 'facts'),
    ...count(request.experiences, 'experiences'),
    ...count(request.procedures, 'procedures'),
  };
}

function count<K extends string>(value: number | undefined, field: K): { [P in K]?: number } {
  if (value === undefined) return {};
  if (value < 0 || value > COUNT_MAX) throw invalidField(field, `must be between 0 and ${COUNT_MAX}; it is ${value}`);
  return { [field]: value } as { [P in K]?: number };
}

/** Only those that can hold one of the kinds. */
function layersOf(layers: readonly MemoryLayer[], kinds: readonly string[]): readonly MemoryLayer[] {
  const possible = kinds.length === 0 ? layers : layers.filter((layer) => kinds.some((kind) => isOf(layer, kind)));
  if (possible.length === 0) throw invalidField('kinds', `are none of ${layers.join(', ')} memory; leave out layers, or name other kinds`);
  return possible;
}

function isOf(layer: MemoryLayer, kind: string): boolean {
  return (RECORD_KINDS[layer] as readonly string[]).includes(kind);
}

function fraction(value: number | undefined, field: string): number | undefined {
  return parseField(Fraction, value, field);
}
