import type { Fact, Skill } from '@etude/contracts/memory';
import type { CoveredUnit, MemoryOutbox, SemanticMemory } from './memory.js';
import type { ConsolidatedAgent, ConsolidationCounts } from '@etude/contracts/memory-upkeep';
import type { ChatResponse } from './model.js';

/** The facts that the model learned from one page of episodes. All have one owner. */
export interface UnitPage {
  readonly id: string;
  readonly facts: readonly Fact[];
  /** The episodes of the page. They count as read when the unit is stored. */
  readonly read: readonly CoveredUnit[];
}

/** All changes that one consolidation run makes for one agent. */
export interface ConsolidationUnit {
  readonly tenant: string;
  readonly agent: string;
  readonly run: string;
  /** Time of the run, in ms since 1970. */
  readonly at: number;
  readonly pages: readonly UnitPage[];
  readonly skills: readonly Skill[];
}

export type UnitName = Pick<ConsolidationUnit, 'tenant' | 'agent' | 'run'>;

/** A unit before it is stored. Searches in it already see its changes. */
export interface StagedUnit extends Pick<SemanticMemory, 'search'> {
  readonly added: number;
  readonly reinforced: number;
  /** Stores the whole unit, or nothing of it, and puts its skills into the outbox. A repeat changes nothing. */
  commit(outbox: MemoryOutbox): Promise<void>;
}

export interface KeptFromUndo {
  /** Name of a record, such as "facts/f1" or "skills/sum@1". */
  readonly name: string;
  readonly reason: string;
}

export interface UndoneUnit {
  readonly agent: string;
  /** Names of the facts and skills that have the same state again as before the unit. */
  readonly undone: readonly string[];
  /** Records that were changed after the unit. They were not undone. */
  readonly kept: readonly KeptFromUndo[];
}

/**
 * Applies the changes of consolidation, one unit per run and agent, and undoes them.
 *
 * After a crash, a unit is stored in full, not at all, or marked as unfinished. The next call for its agent first completes it.
 * @throws EtudeError MEMORY_UNAVAILABLE, MEMORY_FULL; ABORTED if an owner was erased meanwhile
 * Not part of this port: what a unit holds, and whether it is good.
 */
export interface ConsolidationUnits {
  stage(unit: ConsolidationUnit): Promise<StagedUnit>;
  isApplied(unit: UnitName): Promise<boolean>;
  /** Completes units of an agent that a crash interrupted while they were being stored or undone. */
  complete(owner: Omit<UnitName, 'run'>, outbox: MemoryOutbox): Promise<void>;
  /** Undoes a run's changes for one agent, or for all agents if `agent` is null. Episodes stay read. A repeat changes nothing. */
  undo(run: Omit<UnitName, 'agent'> & { readonly agent: string | null; readonly by: string }): Promise<readonly UndoneUnit[]>;
}

/** The stored progress of a run: a line per agent, and the model's answers. Another worker continues from it. @throws EtudeError QUEUE_UNAVAILABLE */
export interface ConsolidationReport {
  line(agent: string): Promise<ConsolidatedAgent | null>;
  putLine(line: ConsolidatedAgent): Promise<void>;
  /** @param key digest of agent and request */
  answer(key: string): Promise<ChatResponse | null>;
  putAnswer(key: string, answer: ChatResponse): Promise<void>;
  progress(counts: ConsolidationCounts): Promise<void>;
}
