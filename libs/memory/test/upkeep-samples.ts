import type { Embedder } from '@etude/domain/ports/model';
import { LexicalEmbedder } from '@etude/domain/retrieval/lexical-embedder';
import { episodeOf, factOf, skillOf, transitionOf } from '@etude/domain/testing/memory-records';
import type { Memory } from '../src/memory.js';

export const TENANT = 'acme';

export const ownerOf = (user: string) => ({ tenant: TENANT, agent: 'coder', user });

/** Stores one transition, episode, skill and fact. */
export async function live({ appliedWrites, semantic }: Memory, user: string, n: string, createdAt = Date.now()): Promise<void> {
  const scope = ownerOf(user);
  const id = `${user}-${n}`;
  const prompt = `Count the ${id} of a list`;
  await appliedWrites.apply(TENANT, `t-${id}`, { kind: 'transition', transition: transitionOf({ id, scope, prompt, createdAt }) });
  const episode = episodeOf({ id, scope, prompt, summary: `Counted ${id}.`, reflection: `Mind the empty ${id}.`, createdAt });
  await appliedWrites.apply(TENANT, `e-${id}`, { kind: 'episode', episode });
  const name = `count_${user}_${n.replaceAll(/[^a-z0-9]/g, '_')}`;
  await appliedWrites.apply(TENANT, `s-${id}`, { kind: 'skill', skill: skillOf({ scope, name, description: prompt, createdAt }) });
  await semantic.store(`f-${id}`, factOf({ scope, text: `The list ${id} ends with ${id}x.`, createdAt }));
}

/** The lexical embedder with another name and half the dimension. */
export function otherEmbedder(): Embedder {
  const lexical = new LexicalEmbedder();
  const dimension = lexical.profile.dimension / 2;
  return {
    profile: { ...lexical.profile, model: 'other', dimension },
    embed: async (texts) => (await lexical.embed(texts)).map((vector) => vector.slice(0, dimension)),
  };
}

export async function exportOf({ upkeep }: Pick<Memory, 'upkeep'>, tenant = TENANT): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of upkeep.exportLines({ tenant })) lines.push(line);
  return lines;
}

export async function* linesOf(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}
