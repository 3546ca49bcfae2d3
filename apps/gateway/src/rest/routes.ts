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
  readonly body: Body;
}

const memory = (verb: Route['verb'], path: string, method: DescMethod, body: Body = 'json'): Route => ({
  verb,
  path: `/v1/memory${path}`,
  method,
  body,
});
const { method: call } = Memory;

/** Plain paths for the calls of `etude.v1`. A new call gets its line here and nothing else. */
export const ROUTES: readonly Route[] = [
  memory('POST', ':search', call.searchMemory),
  memory('POST', ':recall', call.recall),
  memory('GET', '/stats', call.getMemoryStats),
  memory('GET', '/episodes', call.listRecentEpisodes),
  memory('POST', '/episodes', call.storeEpisode),
  memory('POST', '/facts', call.storeFact),
  memory('PATCH', '/facts/{id}', call.updateFact),
  memory('GET', '/facts/{id}/history', call.listFactHistory),
  memory('POST', '/procedures', call.storeProcedure),
  memory('GET', '/documents', call.listDocuments),
  memory('POST', '/documents', call.importDocument, 'bytes'),
  memory('DELETE', '/documents/{id}', call.deleteDocument),
  memory('GET', '/records/{layer}/{id}', call.getMemory),
  memory('GET', ':export', call.exportMemory, 'lines'),
  memory('POST', ':import', call.importMemory, 'lines'),
  memory('POST', ':archive', call.archiveMemory),
  memory('POST', ':restore', call.restoreMemory),
  memory('POST', ':erase', call.eraseMemory),
  memory('GET', '/erasures/{id}', call.getErasure),
  memory('POST', ':reembed', call.startReembedding),
  memory('POST', ':stopReembedding', call.stopReembedding),
  memory('GET', '/reembedding', call.getReembedding),
  memory('POST', ':reconcile', call.reconcileMemory),
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
