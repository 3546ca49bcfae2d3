import { randomUUID } from 'node:crypto';
import type { Scope } from '@etude/contracts/memory';
import type { MemoryLayer } from '@etude/contracts/task';
import { contentDigest } from '@etude/domain/skills/content-digest';
import { claimRequest } from '@etude/memory/layers/repeats';
import type { Memory } from '@etude/memory/memory';
import { optionalRequestId } from '../wire/resource-name.js';

export interface WriteRequest {
  readonly layer: MemoryLayer;
  readonly scope: Scope;
  /** As the caller sent it; empty is none. */
  readonly requestId: string;
  /** Everything that the record is made of, without the time. */
  readonly content: unknown;
}

/**
 * An id of this write, the same whenever the same request comes again. It holds a digest of owner and content, so that no two
 * requests meet in it, whatever their request ids are.
 *
 * @throws EtudeError ALREADY_EXISTS where the request id was used for another content, or by another owner
 */
export async function writeIdOf({ store }: Pick<Memory, 'store'>, { layer, scope, requestId, content }: WriteRequest): Promise<string> {
  const key = optionalRequestId(requestId);
  if (key === null) return `told.${randomUUID()}`;
  const digest = contentDigest({ agent: scope.agent, user: scope.user, content });
  await claimRequest(store, { layer, scope, requestId: key, digest, at: Date.now() });
  return `told.${key}.${digest}`;
}
