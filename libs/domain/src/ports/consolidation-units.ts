import type { Fact, Skill } from '@etude/contracts/memory';
import type { CoveredUnit, MemoryOutbox, SemanticMemory } from './memory.js';
import type { ConsolidatedAgent, ConsolidationCounts } from '@etude/contracts/memory-upkeep';
import type { ChatResponse } from './model.js';

/** What the model learned from one page of episodes. All of it belongs to one owner. */
export interface UnitPage {
  readonly id: string;
  readonly facts: readonly Fact[];
  /** Its episodes, which count as read afterwards. */
  readonly read: readonly CoveredUnit[];
}

/** All changes that one consolidation run makes for one agent. */
export interface ConsolidationUnit {
  readonly tenant: string;
  readonly agent: string;
  readonly run: string;
  /** ms since 1970 */
  readonly at: number;
  readonly pages: readonly UnitPage[];
  /** Candidates to propose. */
  readonly skills: readonly Skill[];
}

export type UnitName = Pick<ConsolidationUnit, 'tenant' | 'agent' | 'run'>;

/** A unit that was applied to a copy of the view. Nothing of it is stored yet. */
export interface StagedUnit extends Pick<SemanticMemory, 'search'> {
  readonly added: number;
  readonly reinforced: number;
  /** Stores the whole unit, or nothing, and puts its skills into the outbox. A repeat changes nothing. */
  commit(outbox: MemoryOutbox): Promise<void>;
}

export interface KeptFromUndo {
  /** Such as "facts/f1" or "skills/sum@1". */
  readonly name: string;
  readonly reason: string;
}

export interface UndoneUnit {
  readonly agent: string;
  /** Names of the facts and skills that are as they were before the unit. */
  readonly undone: readonly string[];
  /** What somebody changed since, and therefore stays. */
  readonly kept: readonly KeptFromUndo[];
}

/**
 * Applies the changes of consolidation, one unit per run and agent, and undoes them.
 *
 * A crash leaves a unit whole, absent, or marked. The next call for its agent completes a marked one first.
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL; ABORTED if an owner was erased meanwhile
 * Not in it: what a unit holds, and whether it is good.
 */
export interface ConsolidationUnits {
  stage(unit: ConsolidationUnit): Promise<StagedUnit>;
  isApplied(unit: UnitName): Promise<boolean>;
  /** Completes the units of an agent, and their undoing, that a crash cut off. */
  complete(owner: Omit<UnitName, 'run'>, outbox: MemoryOutbox): Promise<void>;
  /** Takes the run's changes back, of one agent or of all (null). A repeat changes nothing. Episodes stay read. */
  undo(run: Omit<UnitName, 'agent'> & { readonly agent: string | null; readonly by: string }): Promise<readonly UndoneUnit[]>;
}

/**
 * What a consolidation run keeps, so that another worker continues it: one line per agent, and the model's answers until the run ends.
 *
 * @throws EtudeError QUEUE_UNAVAILABLE
 */
export interface ConsolidationReport {
  line(agent: string): Promise<ConsolidatedAgent | null>;
  putLine(line: ConsolidatedAgent): Promise<void>;
  /** @param key digest of agent and request */
  answer(key: string): Promise<ChatResponse | null>;
  putAnswer(key: string, answer: ChatResponse): Promise<void>;
  /** Shows how far the run is. */
  progress(counts: ConsolidationCounts): Promise<void>;
}
