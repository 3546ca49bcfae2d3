import type { DescMethod } from '@bufbuild/protobuf';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';

/**
 * How bodies travel. `json`: one message each way. `lines`: JSON Lines, in the field `lines` of the messages. `bytes`: the body is the
 * file itself, and what is said about it is in the query.
 */
export type Body = 'json' | 'lines' | 'bytes';

export interface Route {
  readonly verb: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Segments in braces are fields of the request. */
  readonly path: string;
  readonly method: DescMethod;
  /** What it does, in a few words. */
  readonly summary: string;
  readonly body: Body;
  /** Of the body. */
  readonly bytesMax: number;
}

const MIB = 1024 * 1024;
/** Of calls whose bodies are larger than those of others, by the name of the call. */
const BYTES_MAX: Readonly<Record<string, number>> = {
  StoreEpisode: 2 * MIB,
  StoreProcedure: 4 * MIB,
  ImportMemory: 15 * MIB,
  // One more than a document may have, so that its own refusal is what its caller reads.
  ImportDocument: 32 * MIB + 1,
};

const memory = (verb: Route['verb'], path: string, method: DescMethod, summary: string, body: Body = 'json'): Route => ({
  verb,
  path: `/v1/memory${path}`,
  method,
  summary,
  body,
  bytesMax: BYTES_MAX[method.name] ?? MIB,
});
const { method: call } = Memory;

/** Plain paths for the calls of `etude.v1`. A new call gets its line here and nothing else. */
export const ROUTES: readonly Route[] = [
  memory('POST', ':search', call.searchMemory, 'Search memory by meaning and by words'),
  memory('POST', ':recall', call.recall, 'Recall facts, experiences and procedures for a context'),
  memory('GET', '/stats', call.getMemoryStats, 'Count what is in memory'),
  memory('GET', '/episodes', call.listRecentEpisodes, 'List episodes, newest first'),
  memory('POST', '/episodes', call.storeEpisode, 'Store an episode of an outside agent'),
  memory('POST', '/facts', call.storeFact, 'Store a fact'),
  memory('PATCH', '/facts/{id}', call.updateFact, 'Change the text or the confidence of a fact'),
  memory('GET', '/facts/{id}/history', call.listFactHistory, 'List a fact and those that it took the place of'),
  memory('POST', '/procedures', call.storeProcedure, 'Store a procedure in words'),
  memory('GET', '/documents', call.listDocuments, 'List documents'),
  memory('POST', '/documents', call.importDocument, 'Import a document; the body is the file', 'bytes'),
  memory('DELETE', '/documents/{id}', call.deleteDocument, 'Delete a document with its chunks'),
  memory('GET', '/records/{layer}/{id}', call.getMemory, 'Get a record, whole'),
  memory('GET', ':export', call.exportMemory, 'Export memory as JSON Lines', 'lines'),
  memory('POST', ':import', call.importMemory, 'Import lines of an export', 'lines'),
  memory('POST', ':archive', call.archiveMemory, 'Take what has little worth out of retrieval'),
  memory('POST', ':restore', call.restoreMemory, 'Bring archived records back'),
  memory('POST', ':erase', call.eraseMemory, 'Erase every trace of an agent, a user or the tenant'),
  memory('GET', '/erasures/{id}', call.getErasure, 'Get the receipt of an erasure'),
  memory('POST', ':reembed', call.startReembedding, 'Fill the vectors of another embedder; for operators'),
  memory('POST', ':stopReembedding', call.stopReembedding, 'Stop the re-embedding; for operators'),
  memory('GET', '/reembedding', call.getReembedding, 'Say how far the re-embedding is; for operators'),
  memory('POST', ':reconcile', call.reconcileMemory, 'Look for half-written records and mend them; for operators'),
];

export interface Match {
  readonly route: Route;
  readonly fields: Readonly<Record<string, string>>;
}

/** null: no such path. A path that is there with other verbs answers those. */
export function matchRoute(verb: string, path: string): Match | { readonly allowed: readonly string[] } | null {
  const found = ROUTES.flatMap((route) => {
    const fields = fieldsOf(route.path, path);
    return fields === null ? [] : [{ route, fields }];
  });
  if (found.length === 0) return null;
  return found.find(({ route }) => route.verb === verb) ?? { allowed: found.map(({ route }) => route.verb) };
}

function fieldsOf(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const fields: Record<string, string> = {};
  for (const [i, segment] of wanted.entries()) {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    const value = given[i] ?? '';
    if (name === undefined && segment !== value) return null;
    if (name === undefined) continue;
    const text = decoded(value);
    if (text === null || text === '') return null;
    fields[name] = text;
  }
  return fields;
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
