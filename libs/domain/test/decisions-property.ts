import { errorCode } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import * as fc from 'fast-check';
import type { ProceduralMemory } from '../src/ports/memory.js';
import { NEW_YEAR } from './memory-records.js';

/** `by`: which of the registries. */
interface Decision {
  readonly by: number;
}

/** What holds of skills whoever decides about them, at the same time. */
export interface DecisionsProperty<D extends Decision> {
  /** Decisions of one turn are made at the same time. */
  readonly turns: fc.Arbitrary<readonly (readonly D[])[]>;
  /** One is in use behind these. They come first: a few that are drawn may leave none, and then nothing is shown. */
  readonly example: readonly (readonly D[])[];
  /** What is decided about. */
  readonly store: (registry: ProceduralMemory) => Promise<void>;
  readonly skillsIn: (registry: ProceduralMemory) => Promise<readonly Skill[]>;
  readonly decide: (registry: ProceduralMemory, decision: D, skills: readonly Skill[], at: number) => Promise<unknown>;
  /**
   * @returns how many skills in use were looked at
   * @throws Error where it does not hold behind the turn
   */
  readonly look: (registry: ProceduralMemory, turn: readonly D[]) => Promise<number>;
}

/** Registries over one store. */
export interface OpenRegistries {
  readonly registries: readonly [ProceduralMemory, ...ProceduralMemory[]];
  readonly close?: () => Promise<void>;
}

/** `inUse`: skills in use that were looked at; `aborted` and `refused`: decisions that met another one, or what it left. */
export interface Decided {
  readonly inUse: number;
  readonly aborted: number;
  readonly refused: number;
}

/** Draws decisions, makes them over registries that each run opens for itself, and looks behind every turn. */
export async function decideAtOnce<D extends Decision>(
  property: DecisionsProperty<D>,
  open: () => OpenRegistries | Promise<OpenRegistries>,
  { numRuns, turnsMax = Infinity }: { readonly numRuns: number; readonly turnsMax?: number },
): Promise<Decided> {
  const found = { inUse: 0, aborted: 0, refused: 0 };
  const run = async (turns: readonly (readonly D[])[]) => {
    const { registries, close } = await open();
    try {
      await property.store(registries[0]);
      for (const [i, turn] of turns.slice(0, turnsMax).entries()) {
        const skills = await property.skillsIn(registries[0]);
        const outcomes = await Promise.allSettled(
          turn.map((decision, j) =>
            property.decide(registries[decision.by % registries.length] ?? registries[0], decision, skills, NEW_YEAR + 100 + i * 10 + j),
          ),
        );
        for (const outcome of outcomes) if (outcome.status === 'rejected') found[refusal(outcome.reason)] += 1;
        found.inUse += await property.look(registries[0], turn);
      }
    } finally {
      await close?.();
    }
  };
  await fc.assert(fc.asyncProperty(property.turns, run), { numRuns, examples: [[property.example]] });
  return found;
}

/** Nobody is refused but for what somebody else decided. */
function refusal(error: unknown): 'aborted' | 'refused' {
  const code = errorCode(error);
  if (code === 'ABORTED') return 'aborted';
  if (code === 'FAILED_PRECONDITION') return 'refused';
  throw error;
}
