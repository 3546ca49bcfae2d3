import { EtudeError } from '@etude/contracts/errors';
import type { MemoryWrite, Scope, Skill } from '@etude/contracts/memory';
import type { StoreSkillOptions } from '@etude/domain/ports/memory';
import { requireOwn, requireScope } from '@etude/domain/retrieval/scopes';
import type { Change, RecordStore } from '../record-store.js';
import { markApplied, wasApplied } from './applied-marker.js';
import type { AppliedWrite, AppliedWrites } from './applied-writes.js';
import type { RecordEpisodicLayer } from './episodic-layer.js';
import type { RecordProceduralLayer } from './procedural-layer.js';

interface Layers {
  readonly store: RecordStore;
  readonly episodic: RecordEpisodicLayer;
  readonly procedural: RecordProceduralLayer;
}

/** A write and the note that it was applied go to the store in one list, the note last; see `docs/decisions/0025`. */
export class RecordAppliedWrites implements AppliedWrites {
  readonly #layers: Layers;

  constructor(layers: Layers) {
    this.#layers = layers;
  }

  async apply(...[tenant, writeId, write, options = {}]: Parameters<AppliedWrites['apply']>): Promise<AppliedWrite> {
    requireScope({ tenant, agent: null });
    requireOwn(tenant, scopeOf(write));
    if (write.kind === 'skill') return this.#applySkill(writeId, write.skill, options);
    if (write.kind === 'skill_use') return { applied: await this.#layers.procedural.applyUse(writeId, write), skill: null };
    return { applied: await this.#applyInserts(writeId, write), skill: null };
  }

  async wasApplied(tenant: string, writeId: string): Promise<boolean> {
    const { store } = this.#layers;
    const found = await Promise.all([wasApplied(store, tenant, 'episodic', writeId), wasApplied(store, tenant, 'procedural', writeId)]);
    return found.includes(true);
  }

  /** What follows a skill (verification) may be what was lost, so it is answered again. Storing it twice is storing it once. */
  async #applySkill(writeId: string, skill: Skill, options: StoreSkillOptions): Promise<AppliedWrite> {
    const { procedural, store } = this.#layers;
    const stored = await procedural.store(skill, options);
    const [applied = false] = await store.write(skill.scope.tenant, [markApplied('procedural', skill.scope, writeId, skill.createdAt)]);
    return { applied, skill: stored };
  }

  async #applyInserts(writeId: string, write: Extract<MemoryWrite, { kind: 'transition' | 'episode' }>): Promise<boolean> {
    const { episodic, store } = this.#layers;
    const { scope, createdAt } = write.kind === 'transition' ? write.transition : write.episode;
    if (await wasApplied(store, scope.tenant, 'episodic', writeId)) return false;
    const inserts: readonly Change[] =
      write.kind === 'transition' ? await episodic.transitionChanges(write.transition) : await episodic.episodeChanges(write.episode);
    const done = await store.write(scope.tenant, [...inserts, markApplied('episodic', scope, writeId, createdAt)]);
    return done.at(-1) === true;
  }
}

/** @throws EtudeError INVALID_ARGUMENT for a kind that is not known */
function scopeOf(write: MemoryWrite): Scope {
  switch (write.kind) {
    case 'skill':
      return write.skill.scope;
    case 'transition':
      return write.transition.scope;
    case 'episode':
      return write.episode.scope;
    case 'skill_use':
      return write.scope;
    default:
      throw new EtudeError('INVALID_ARGUMENT', 'a write to memory is of an unknown kind; upgrade this service');
  }
}
