import type { Skill, SkillTest } from '@etude/contracts/memory';
import type { SkillDependency, SkillParameter } from '@etude/contracts/skill-proof';

/** Who reads skills: an agent, for one of its users or for nobody in particular. */
export interface ToolReader {
  readonly tenant: string;
  readonly agent: string;
  readonly user: string | null;
}

/** Active skills, as one reader sees them. Not in it: running them. */
export interface SkillFinder {
  /** Best first. */
  search(
    reader: ToolReader,
    query: { readonly text: string; readonly limit: number; readonly similarityMin: number },
  ): Promise<ReadonlyArray<{ readonly skill: Skill; readonly similarity: number }>>;
  /** The narrowest of that name; null where there is none. */
  find(reader: ToolReader, name: string): Promise<Skill | null>;
  /** All of them, by name; of equal names the narrowest. */
  list(reader: ToolReader): Promise<readonly Skill[]>;
  /** Adds one to what was offered of each; lost counts are no error. */
  countOffers(skills: readonly Skill[]): Promise<void>;
}

/** How a use went. */
export interface SkillUse {
  readonly success: boolean;
  readonly name: string;
  readonly version: number;
  /** What the function returned, as JSON; null for a program. */
  readonly result: unknown;
  /** Which numbers and texts of it are not as they were returned; empty where all are. */
  readonly resultNote: string;
  readonly output: string;
  /** Empty where it succeeded. */
  readonly error: string;
  readonly durationMs: number;
}

export interface SkillCall {
  readonly name: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The same one again is counted and run once. */
  readonly useId: string;
}

/** A function that later code can call. */
export interface FunctionInReach {
  readonly name: string;
  readonly version: number;
  readonly signature: string;
  /** Its author's words: data, not instructions. */
  readonly description: string;
}

export interface BundledCode {
  readonly code: string;
  /** Which kind of sandbox has the packages that the functions need; absent: any. */
  readonly template?: string;
}

/**
 * Running skills, without a model.
 *
 * @throws EtudeError FAILED_PRECONDITION where one is not active, can't be called, or its code is not what was proven
 */
export interface SkillRunner {
  /** null: there is nothing of that name for this reader, and nothing on its way. */
  use(reader: ToolReader, call: SkillCall, signal: AbortSignal): Promise<SkillUse | null>;
  /** Finds functions to load, and pins them. @throws EtudeError NOT_FOUND naming all that are not there */
  find(
    reader: ToolReader,
    names: readonly string[],
  ): Promise<{ readonly functions: readonly FunctionInReach[]; readonly pins: readonly SkillDependency[] }>;
  /** Python in which `import skills` gives these functions, with all that they need, exactly as pinned, in front of `code`. */
  bundle(reader: ToolReader, pins: readonly SkillDependency[], code: string): Promise<BundledCode>;
}

/** A skill as an agent hands it in. */
export interface ToolSkillDraft {
  readonly name: string;
  readonly description: string;
  readonly code: string;
  /** null: the only function at the top, or the one with the skill's name. */
  readonly entryPoint: string | null;
  readonly parameters: readonly SkillParameter[];
  readonly tests: readonly SkillTest[];
  readonly tags: readonly string[];
  readonly category: string | null;
  readonly examplePrompts: readonly string[];
}

export interface RegisteredSkill {
  /** `waiting`: its verification was not over in the time that the caller has. */
  readonly status: 'registered' | 'pending_review' | 'rejected' | 'waiting';
  readonly reason: string;
  readonly name: string;
  readonly version: number;
  readonly evidence: readonly string[];
}

/** The way in for what agents write: a candidate, verified and approved like any other. */
export interface SkillRegistrar {
  /** Reads the code without running it. `runnable`: with the skills that it calls in front of it. */
  inspect(
    reader: ToolReader,
    draft: Pick<ToolSkillDraft, 'name' | 'code' | 'entryPoint'>,
    signal: AbortSignal,
  ): Promise<{ readonly problems: readonly string[] } | { readonly entryPoint: string | null; readonly runnable: BundledCode }>;
  /** Answers once it was verified and settled, or waiting makes no sense any more. The same content again changes nothing. */
  register(reader: ToolReader, draft: ToolSkillDraft, by: string, signal: AbortSignal): Promise<RegisteredSkill>;
}

export const TODO_STATUSES = ['pending', 'in_progress', 'completed'] as const;
export interface Todo {
  readonly content: string;
  readonly status: (typeof TODO_STATUSES)[number];
}

export interface SessionKey extends ToolReader {
  readonly session: string;
}

/** What a session of an agent keeps between calls. */
export interface ToolSession {
  readonly todos: readonly Todo[];
  /** By name, as they were when they were loaded. */
  readonly loaded: readonly SkillDependency[];
}

/** Kept for days, and erased with their owner. @throws EtudeError QUEUE_UNAVAILABLE */
export interface ToolSessions {
  read(key: SessionKey): Promise<ToolSession>;
  /** All of them at once: the plan as it is now. */
  putTodos(key: SessionKey, todos: readonly Todo[]): Promise<void>;
  /** Adds these to what is loaded; one of the same name takes the place of what was. Answers all of them. */
  load(key: SessionKey, pins: readonly SkillDependency[]): Promise<readonly SkillDependency[]>;
}

export interface SkillWish {
  readonly name: string;
  /** Somebody's words: data wherever they go. */
  readonly description: string;
  readonly example: Readonly<Record<string, unknown>> | null;
}

/** Skills that somebody missed. */
export interface SkillWishes {
  /** The same wish again is the first one. Answers its id. @throws EtudeError FAILED_PRECONDITION where too many of the agent's are open */
  request(reader: ToolReader, wish: SkillWish): Promise<string>;
}
