import type { JsonObject } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { tool } from '@langchain/core/tools';
import {
  BaseStore,
  type GetOperation,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchOperation,
} from '@langchain/langgraph';
import { z } from 'zod';
import type { MemoryRecord } from './gen/etude/v1/memory_pb.js';
import { Etude } from './index.js';
import { DESCRIPTION, Interpreter, type InterpreterOptions } from './interpreter.js';
import type { MemoryOwner } from './memory.js';

type SearchItem = Awaited<ReturnType<BaseStore['search']>>[number];

const SEARCHED = 100;
const LISTED = 10;

/** The tool `run_python` for LangGraph: runs code in a sandbox that keeps names and files between calls. */
export function pythonTool(options: InterpreterOptions = {}) {
  const interpreter = new Interpreter(options);
  return tool(async ({ code }: { readonly code: string }) => interpreter.run(code), {
    name: 'run_python',
    description: DESCRIPTION,
    schema: z.object({ code: z.string() }),
  });
}

/** An item of the store, and the id of the fact that holds it. */
interface Stored {
  readonly id: string;
  readonly item: SearchItem;
}

/**
 * LangGraph's long-term memory in Etude's facts. An item is a fact "NAMESPACE/KEY: VALUE" with its namespace as category ("users/ada") and
 * its key as subject. VALUE is JSON. A get reads all facts of the owner, so keep their number small. `index` is not supported.
 */
export class EtudeStore extends BaseStore {
  readonly #client: Etude;
  readonly #owner: MemoryOwner;

  constructor({ client = new Etude(), ...owner }: MemoryOwner & { readonly client?: Etude } = {}) {
    super();
    this.#client = client;
    this.#owner = owner;
  }

  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results: unknown[] = [];
    for (const operation of operations) results.push(await this.#do(operation));
    return results as OperationResults<Op>;
  }

  async #do(operation: Operation): Promise<unknown> {
    if ('namespacePrefix' in operation) return this.#search(operation);
    if (!('namespace' in operation)) return this.#namespaces(operation);
    return 'value' in operation ? this.#put(operation) : ((await this.#find(operation))?.item ?? null);
  }

  async #stored(): Promise<Stored[]> {
    const all: Stored[] = [];
    for await (const record of this.#client.memory.list('fact', this.#owner)) {
      const stored = storedOf(record);
      if (stored) all.push(stored);
    }
    return all;
  }

  async #find({ namespace, key }: GetOperation): Promise<Stored | undefined> {
    return (await this.#stored()).find(({ item }) => item.key === key && item.namespace.join('/') === namespace.join('/'));
  }

  async #put({ namespace, key, value }: PutOperation): Promise<void> {
    const found = await this.#find({ namespace, key });
    if (found) await this.#client.memory.forget(found.id, this.#owner);
    if (value === null) return;
    const category = namespace.join('/');
    await this.#client.memory.remember(`${category}/${key}: ${JSON.stringify(value)}`, { ...this.#owner, category, subject: key });
  }

  async #search({ namespacePrefix, filter = {}, limit = LISTED, offset = 0, query }: SearchOperation): Promise<SearchItem[]> {
    const all = await this.#stored();
    const ranked = query ? await this.#ranked(query, all) : all.map(({ item }) => item);
    const wanted = Object.entries(filter);
    return ranked
      .filter(({ namespace }) => namespacePrefix.every((part, at) => namespace[at] === part))
      .filter(({ value }) => wanted.every(([name, one]) => JSON.stringify(value[name]) === JSON.stringify(one)))
      .slice(offset, offset + limit);
  }

  async #ranked(query: string, all: readonly Stored[]): Promise<SearchItem[]> {
    const hits = await this.#client.memory.search(query, { ...this.#owner, kinds: ['fact'], limit: SEARCHED });
    const items = new Map(all.map(({ id, item }) => [id, item]));
    return hits.flatMap(({ id, score }) => {
      const item = items.get(id);
      return item ? [{ ...item, score }] : [];
    });
  }

  async #namespaces({ matchConditions = [], maxDepth, limit, offset }: ListNamespacesOperation): Promise<string[][]> {
    const found = (await this.#stored())
      .filter(({ item }) => matchConditions.every((condition) => matches(item.namespace, condition)))
      .map(({ item }) => item.namespace.slice(0, maxDepth).join('/'));
    return [...new Set(found)]
      .toSorted()
      .slice(offset, offset + limit)
      .map((namespace) => namespace.split('/'));
  }
}

/** @returns null for a fact that isn't an item of a store */
function storedOf({ id, fields = {}, createTime }: MemoryRecord): Stored | null {
  const { subject: key, category, fact } = fields;
  if (typeof key !== 'string' || typeof category !== 'string' || typeof fact !== 'string') return null;
  const prefix = `${category}/${key}: `;
  if (!fact.startsWith(prefix)) return null;
  try {
    const value = JSON.parse(fact.slice(prefix.length)) as JsonObject;
    const time = createTime ? timestampDate(createTime) : new Date(0);
    return { id, item: { namespace: category.split('/'), key, value, createdAt: time, updatedAt: time } };
  } catch {
    return null;
  }
}

function matches(namespace: readonly string[], { matchType, path }: MatchCondition): boolean {
  const part = matchType === 'prefix' ? namespace.slice(0, path.length) : namespace.slice(-path.length);
  return part.length === path.length && path.every((want, at) => want === '*' || want === part[at]);
}
