import type { JsonObject, JsonValue } from '@bufbuild/protobuf';

/** In whose name a call is made. */
export interface Caller {
  readonly agent: string;
  readonly user?: string;
}

export interface Draft {
  readonly name: string;
  readonly description: string;
  readonly code: string;
  readonly tests: ReadonlyArray<{ readonly args: JsonValue[]; readonly expected: JsonValue }>;
}

export interface Used {
  readonly success: boolean;
  readonly result: JsonValue | undefined;
  readonly error: string;
  readonly asked: boolean;
}

/** One way into Etude. Whatever the way, the same words mean the same. */
export interface Door {
  readonly name: string;
  /** Runs code in a sandbox; answers what it printed. */
  execute(caller: Caller, code: string): Promise<string>;
  /** Registers and waits until it was verified. Answers "active", "pending_review" or "rejected", and why. */
  register(caller: Caller, draft: Draft): Promise<{ readonly status: string; readonly reason: string }>;
  /** Names of the skills that are found, best first. */
  search(caller: Caller, query: string): Promise<readonly string[]>;
  use(caller: Caller, name: string, parameters: JsonObject): Promise<Used>;
  close(): Promise<void>;
}

/** What a reviewer does, over gRPC or REST; MCP has no tools for it. */
export interface ReviewDoor {
  approve(caller: Caller, name: string): Promise<void>;
  /** A copy for the whole tenant, which waits for review. */
  promote(caller: Caller, name: string): Promise<void>;
  /** To the version before. Answers the version that is active now. */
  rollback(caller: Caller, name: string): Promise<number>;
  versions(
    caller: Caller,
    name: string,
  ): Promise<ReadonlyArray<{ readonly version: number; readonly status: string; readonly reason: string }>>;
}

/** A text of an answer; empty where it has none. */
export const textIn = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');
