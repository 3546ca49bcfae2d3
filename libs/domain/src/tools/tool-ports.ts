import type { SkillReader } from '../skills/life/find-skill.js';
import type { LoadedFunction } from '../skills/proof/bundle-code.js';
import type { UseOutcome } from '../skills/proof/use-skill.js';
import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { SandboxFile } from '@etude/contracts/sandbox';
import type { SkillDependency, SkillParameter } from '@etude/contracts/skill-proof';

/** Finds active skills that one reader can see. Not in it: running them. */
export interface SkillFinder {
  /** Best first. */
  search(
    reader: SkillReader,
    query: { readonly text: string; readonly limit: number; readonly similarityMin: number },
  ): Promise<ReadonlyArray<{ readonly skill: Skill; readonly similarity: number }>>;
  /** The skill of that name with the narrowest owner; null if there is none. */
  find(reader: SkillReader, name: string): Promise<Skill | null>;
  /** All active skills, by name. Of equal names only the one with the narrowest owner. */
  list(reader: SkillReader): Promise<readonly Skill[]>;
  /** Counts each skill as offered. Losing a count is not an error. */
  countOffers(skills: readonly Skill[]): Promise<void>;
}

export type SkillUse = Omit<Extract<UseOutcome, { outcome: 'used' }>, 'outcome' | 'exit'>;

export interface SkillCall {
  readonly name: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Files that lie beside the skill when it runs. */
  readonly files?: readonly SandboxFile[];
  /** A repeat with the same id is counted and run once. */
  readonly useId: string;
}

/** A function that later code of the session can call. */
export type FunctionInReach = Omit<LoadedFunction, 'digest'>;

export interface BundledCode {
  readonly code: string;
  /** The sandbox template that has the packages of the functions. Absent: the default template. */
  readonly template?: string;
}

/**
 * Runs skills without a model.
 *
 * @throws EtudeError FAILED_PRECONDITION if a skill is not active, can't be called, or its code differs from the proven one
 */
export interface SkillRunner {
  /** null if the reader has no skill of that name in any status. */
  use(reader: SkillReader, call: SkillCall, signal: AbortSignal): Promise<SkillUse | null>;
  /** Finds functions to load, and pins their versions. @throws EtudeError NOT_FOUND naming all that are missing */
  find(
    reader: SkillReader,
    names: readonly string[],
  ): Promise<{ readonly functions: readonly FunctionInReach[]; readonly pins: readonly SkillDependency[] }>;
  /** Puts the module `skills` in front of `code`, with these functions and all they call, exactly as pinned. */
  bundle(reader: SkillReader, pins: readonly SkillDependency[], code: string): Promise<BundledCode>;
}

export interface ToolSkillDraft {
  readonly name: string;
  readonly description: string;
  readonly code: string;
  /** null: the function with the skill's name, or the only one at the top level. */
  readonly entryPoint: string | null;
  readonly parameters: readonly SkillParameter[];
  readonly tests: readonly SkillTest[];
  readonly tags: readonly string[];
  readonly category: string | null;
  readonly examplePrompts: readonly string[];
}

export interface RegisteredSkill {
  /** `waiting`: verification did not end within the caller's time. */
  readonly status: 'registered' | 'pending_review' | 'rejected' | 'waiting';
  readonly reason: string;
  readonly name: string;
  readonly version: number;
  readonly evidence: readonly string[];
}

/** Registers skills that agents write. They become candidates, and are verified and approved like all others. */
export interface SkillRegistrar {
  /** Reads the code without running it. `runnable` is the code, preceded by the skills that it calls. */
  inspect(
    reader: SkillReader,
    draft: Pick<ToolSkillDraft, 'name' | 'code' | 'entryPoint'>,
    signal: AbortSignal,
  ): Promise<{ readonly problems: readonly string[] } | { readonly entryPoint: string | null; readonly runnable: BundledCode }>;
  /** Returns when verification has ended, or when the caller's time is over. Registering the same content again changes nothing. */
  register(reader: SkillReader, draft: ToolSkillDraft, by: string, signal: AbortSignal): Promise<RegisteredSkill>;
}

export const TODO_STATUSES = ['pending', 'in_progress', 'completed'] as const;
export interface Todo {
  readonly content: string;
  readonly status: (typeof TODO_STATUSES)[number];
}

export type SessionKey = SkillReader & { readonly session: string };

/** What is stored for a tool session between calls. */
export interface ToolSession {
  readonly todos: readonly Todo[];
  /** Loaded functions by name, pinned to the versions at the time of loading. */
  readonly loaded: readonly SkillDependency[];
}

/** Sessions are kept for days, and erased with their owner. @throws EtudeError QUEUE_UNAVAILABLE */
export interface ToolSessions {
  read(key: SessionKey): Promise<ToolSession>;
  /** Replaces the whole plan. */
  putTodos(key: SessionKey, todos: readonly Todo[]): Promise<void>;
  /** Adds these functions, and replaces functions of the same names. Returns all loaded functions. */
  load(key: SessionKey, pins: readonly SkillDependency[]): Promise<readonly SkillDependency[]>;
}

export interface SkillWish {
  readonly name: string;
  /** Written by a caller: data, not instructions. */
  readonly description: string;
  readonly example: Readonly<Record<string, unknown>> | null;
}

export interface SkillWishes {
  /** Returns the request's id, the same one for the same wish. @throws EtudeError FAILED_PRECONDITION if the agent has too many open requests */
  request(reader: SkillReader, wish: SkillWish): Promise<string>;
}
