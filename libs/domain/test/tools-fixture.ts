import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { RunResult, SandboxRun } from '@etude/contracts/sandbox';
import { ProceduralMemorySettings, type SkillDependency } from '@etude/contracts/skill-proof';
import { expect } from 'vitest';
import { LexicalEmbedder } from '../src/retrieval/lexical-embedder.js';
import { FakeSandboxes } from './fake-sandboxes.js';
import { FakeClock } from './fake-clock.js';
import { FakeMemoryOutbox } from './fake-memory-outbox.js';
import type { ReadScope, SearchQuery } from '../src/ports/memory.js';
import { hitOf, skillOf as recordOf } from './memory-records.js';
import type { SkillReader } from '../src/skills/life/find-skill.js';
import { dependencyOn } from '../src/skills/proof/bundle-code.js';
import { agentTools, ToolRegistry } from '../src/tools/agent-tools.js';
import type { RememberDeps } from '../src/tools/memory-tools.js';
import type { RegisteredSkill, SkillRegistrar, ToolSkillDraft } from '../src/tools/register-skill-tool.js';
import type { WorkCellOutcome } from '../src/ports/sandboxes.js';
import type { CodeSession, CodeSessions } from '../src/tools/execute-in-session.js';
import type { SkillCall, SkillWish, SkillWishes, Todo, ToolContext, ToolSessions, ToolSkills } from '../src/tools/tool-definition.js';

const FILES_MAX = 1_000;

export const never: AbortSignal = new AbortController().signal;

export const skillOf = (name: string, more: Partial<Skill> = {}): Skill =>
  recordOf({
    name,
    description: `What ${name} does.`,
    code: `def ${name}(text):\n    return text`,
    entryPoint: name,
    parameters: [{ name: 'text', type: 'str', description: 'the text', required: true }],
    status: 'active',
    sources: [],
    ...more,
  });

/** The outcome of a call that was refused with these words. */
export const refusal = (words: string | RegExp) => ({
  success: false,
  error: (typeof words === 'string' ? expect.stringContaining(words) : expect.stringMatching(words)) as string,
});

/** A list of skills. In a search, all have the same similarity. */
export class FakeSkills implements ToolSkills, SkillRegistrar, SkillWishes {
  readonly offered: string[] = [];
  readonly used: SkillCall[] = [];
  readonly registered: Array<ToolSkillDraft & { readonly by: string }> = [];
  readonly wished: SkillWish[] = [];
  similarity = 0.9;
  wishesMax = 100;
  answer: RegisteredSkill = { status: 'registered', reason: '', name: 'parse_csv', version: 1, evidence: ['its tests pass'] };
  problems: string[] = [];

  constructor(readonly skills: Skill[] = []) {}

  async search(_reader: SkillReader, { limit, similarityMin }: { limit: number; similarityMin: number }) {
    const { similarity } = this;
    return similarity < similarityMin ? [] : this.skills.slice(0, limit).map((skill) => ({ skill, similarity }));
  }
  async list() {
    return this.skills;
  }
  async countOffers(skills: readonly Skill[]) {
    this.offered.push(...skills.map(({ name }) => name));
  }
  async find(_reader: SkillReader, wanted: string) {
    return this.skills.find(({ name }) => name === wanted) ?? null;
  }
  async load(_reader: SkillReader, wanted: readonly string[]) {
    const found = this.skills.filter(({ name }) => wanted.includes(name));
    const functions = found.map(({ name, version, description }) => ({ name, version, signature: `def ${name}(text)`, description }));
    return { functions, pins: found.map(dependencyOn) };
  }
  async use(_reader: SkillReader, call: SkillCall) {
    this.used.push(call);
    const skill = this.skills.find(({ name }) => name === call.name);
    if (skill === undefined) return null;
    return {
      success: true,
      name: skill.name,
      version: 1,
      result: call.parameters,
      resultNote: '',
      output: 'printed',
      error: '',
      durationMs: 3,
    };
  }
  async bundle(_reader: SkillReader, pins: readonly SkillDependency[], code: string) {
    return { code: `# with ${pins.map(({ name }) => name).join(', ')}\n${code}`, template: 'numbers' };
  }
  async inspect(_reader: SkillReader, { name, code, entryPoint }: Pick<ToolSkillDraft, 'name' | 'code' | 'entryPoint'>) {
    return this.problems.length > 0 ? { problems: this.problems } : { entryPoint: entryPoint ?? name, runnable: { code } };
  }
  async register(_reader: SkillReader, draft: ToolSkillDraft, by: string) {
    this.registered.push({ ...draft, by });
    return { ...this.answer, name: draft.name };
  }
  async request(_reader: SkillReader, wish: SkillWish) {
    if (this.wished.length >= this.wishesMax) throw new EtudeError('FAILED_PRECONDITION', 'Too many are open.');
    this.wished.push(wish);
    return 'w1';
  }
}

export class FakeToolSessions implements ToolSessions {
  readonly #todos = new Map<string, readonly Todo[]>();
  readonly #loaded = new Map<string, readonly SkillDependency[]>();

  async read({ session }: { session: string }) {
    return { todos: this.#todos.get(session) ?? [], loaded: this.#loaded.get(session) ?? [] };
  }
  async putTodos({ session }: { session: string }, todos: readonly Todo[]) {
    this.#todos.set(session, todos);
  }
  async load({ session }: { session: string }, pins: readonly SkillDependency[]) {
    const byName = new Map([...(this.#loaded.get(session) ?? []), ...pins].map((pin) => [pin.name, pin]));
    this.#loaded.set(session, [...byName.values()]);
    return [...byName.values()];
  }
}

/** One sandbox for all named sessions, or the reason why there is none. `cell` returns the result of a cell. */
export class FakeCodeSessions implements CodeSessions {
  unavailable = '';
  isReplaced = false;
  isTooLarge = false;
  template = 'default';
  readonly held: string[] = [];
  readonly ran: Array<{ readonly executionId: string; readonly code: string }> = [];
  cell: (code: string) => Partial<WorkCellOutcome> = () => ({});

  async open(): Promise<CodeSession | { readonly unavailable: string }> {
    if (this.unavailable !== '') return { unavailable: this.unavailable };
    return {
      sandbox: {
        name: 'sandboxes/s12345678',
        run: async (cell) => {
          this.ran.push(cell);
          const ended = { exit: 'ok', exitCode: 0, signal: null, stdout: '', stderr: '', displays: [], stateLost: false } as const;
          return { ...ended, ...this.cell(cell.code) };
        },
        list: async () => this.held.slice(0, FILES_MAX).map((path) => ({ path, sizeBytes: 0, modifiedAt: 0 })),
        read: async (_path, bytesMax) => new Uint8Array(this.isTooLarge ? bytesMax : 0),
      },
      template: this.template,
      isReplaced: this.isReplaced,
      inTurn: (work) => work(),
    };
  }
}

const remembers = {
  search: (_scope: ReadScope, { kinds = ['transition'] }: SearchQuery) =>
    Promise.resolve(
      [
        hitOf({ id: 'f1', kind: 'fact', text: 'The vault opens at nine.' }),
        hitOf({ id: 'd1.0', kind: 'chunk', text: 'Chapter one.', sources: ['documents/d1'] }),
      ].filter(({ kind }) => kinds.includes(kind)),
    ),
};

const memory = () => Promise.resolve({ episodic: remembers, semantic: remembers, procedural: { search: () => Promise.resolve([]) } });
const skillPath = (tenant: string, name: string) => `/instances/${tenant}/providers/Etude.Skill/skills/${name}`;

/** The tools over fakes. `run` returns the result of the code that a tool executes. */
export function startTools(skills: Skill[] = [], run: (run: SandboxRun) => Partial<RunResult> = () => ({ value: {} })) {
  const fake = new FakeSkills(skills);
  const sandboxes = new FakeSandboxes(run);
  const sessions = new FakeToolSessions();
  const codeSessions = new FakeCodeSessions();
  const outbox = new FakeMemoryOutbox();
  const remember: RememberDeps = { outbox, clock: new FakeClock(1_000), provenance: async () => ({ source: 'told', episodes: [] }) };
  const skillParts = { skills: fake, registrar: fake, wishes: fake, skillPath };
  const code = { ...skillParts, sandboxes, sessions, codeSessions, embedder: new LexicalEmbedder() };
  const registry = new ToolRegistry(agentTools({ code, todos: sessions, skills: code, memory, remember }));
  let calls = 0;
  const contextOf = (settings: Partial<ProceduralMemorySettings> = {}, more: Partial<ToolContext> = {}): ToolContext => ({
    tenant: 'acme',
    agent: 'coder',
    user: null,
    session: 's1',
    callId: `call-${(calls += 1)}`,
    by: 'key',
    settings: ProceduralMemorySettings.parse({ enabled: true, ...settings }),
    ...more,
  });
  const call = (name: string, args: unknown = {}, settings: Partial<ProceduralMemorySettings> = {}, more: Partial<ToolContext> = {}) =>
    registry.call(name, args, contextOf(settings, more), never);
  return { fake, outbox, sandboxes, sessions, codeSessions, registry, call, contextOf };
}
