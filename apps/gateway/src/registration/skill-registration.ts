import { isAbort } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { SkillVerify, verificationOf } from '@etude/contracts/queues';
import type { Clock } from '@etude/domain/ports/clock';
import type { CodeAnalyser } from '@etude/domain/ports/code-analyser';
import type { MemoryOutbox, ProceduralMemory } from '@etude/domain/ports/memory';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import type { SkillReader } from '@etude/domain/skills/life/find-skill';
import { registerSkill, requireName, requireRegistrable } from '@etude/domain/skills/life/register-skill';
import type { TemplateFor } from '@etude/domain/skills/life/skill-packages';
import { pinDependencies } from '@etude/domain/skills/proof/bundle-code';
import { inspectCode, problemTexts, undeclaredProblems } from '@etude/domain/skills/proof/inspect-code';
import { reverifyDependents } from '@etude/domain/skills/proof/reverify-dependents';
import type { AgentSettingsStore } from '@etude/queue/agents/agent-settings-store';
import type { ToolCalls } from '@etude/queue/agents/tool-sessions';
import type { WantedSkills } from '@etude/queue/agents/wanted-skills';
import type { Producer } from '@etude/queue/jobs/producer';
import type { MemoryAccess } from '../calls/memory-access.js';
import type { FirstTime } from '../calls/once.js';
import { invalid, invalidField, refuseAny, type Violation } from '../wire/validation.js';
import type { CheckedDraft } from './skill-draft.js';

/** What handlers of skills work with. */
export interface SkillDeps {
  readonly memory: MemoryAccess;
  readonly sandboxes: Sandboxes;
  readonly outbox: MemoryOutbox;
  readonly checker: ProofChecker;
  readonly analyser: CodeAnalyser;
  readonly clock: Clock;
  /** Share of the mutants that tests have to notice. */
  readonly mutationScoreMin: number;
  /** Which kind of sandbox has the packages of a skill; throws where none has. */
  readonly templateFor: TemplateFor;
  readonly settings: AgentSettingsStore;
  readonly registration: SkillRegistration;
  readonly wanted: WantedSkills;
  /** Which agents called lately. */
  readonly toolCalls: ToolCalls;
}

export interface Registration {
  readonly draft: CheckedDraft;
  /** Who registers it. */
  readonly reader: SkillReader;
  /** Version that was edited; 0: whatever is newest. */
  readonly baseVersion: number;
  /** For the history. */
  readonly by: string;
  /** Whoever registers it may approve it as well. */
  readonly isReviewer?: boolean;
}

/** How long somebody waits for a verification. */
export interface Patience {
  readonly signal: AbortSignal;
  readonly waitMs: number;
}

/** The way in for what people and agents write: looked at by Python's parser, pinned, stored as a candidate, sent to verification. */
export class SkillRegistration {
  constructor(private readonly parts: Pick<SkillDeps, 'sandboxes' | 'templateFor' | 'settings'> & { readonly producer: Producer }) {}

  /**
   * What the code says of itself, with what it depends on; nothing is stored, and nothing of it is run.
   *
   * @throws EtudeError INVALID_ARGUMENT with the line; FAILED_PRECONDITION for a skill that it calls or a package that no sandbox has; SANDBOX_UNAVAILABLE
   */
  async completed(procedural: ProceduralMemory, registration: Registration, signal: AbortSignal): Promise<Skill> {
    const { named, uses } = await this.read(registration, signal);
    const dependencies = await pinDependencies(procedural, registration.reader, uses, named);
    return dependencies.length === 0 ? named : { ...named, dependencies };
  }

  /** What the code says of itself, and the names of the skills that it calls, whether or not they are there. @throws as `completed` */
  async read({ draft, reader }: Registration, signal: AbortSignal): Promise<{ readonly named: Skill; readonly uses: readonly string[] }> {
    const { skill, isProgram } = draft;
    requireName(skill.name);
    this.parts.templateFor(skill.packages ?? []);
    // Somebody's words, and not Python.
    if (skill.kind === 'procedure') return { named: skill, uses: [] };
    const { tenant, agent, user } = reader;
    const place = { sandboxes: this.parts.sandboxes, tenant, owner: { agent, user } };
    const found = await inspectCode({ ...skill, isProgram }, place, signal);
    if ('problems' in found) throw invalid(problemTexts(found.problems).map((description) => ({ field: 'skill.code', description })));
    if (skill.kind === 'snippet' && found.kind === 'function')
      throw invalidField('skill.kind', `the code has ${found.entryPoint} to call, so it is a function, which needs tests, and no snippet`);
    const named: Skill = { ...skill, entryPoint: found.entryPoint, kind: found.kind === 'snippet' ? 'snippet' : skill.kind };
    refuseAny([
      ...undeclaredProblems(skill.parameters, found.contract).map((description) => ({ field: 'skill.parameters', description })),
      ...testProblems(named),
    ]);
    return { named, uses: found.uses };
  }

  /**
   * As of when it came first: a repeat of a request that died behind the store finds by that what it stored, whatever was stored since.
   *
   * @throws EtudeError as `completed`; ABORTED where another version is the newest; FAILED_PRECONDITION where an agent has too many
   */
  async register(
    procedural: ProceduralMemory,
    registration: Registration,
    signal: AbortSignal,
    { isRepeat, at }: Pick<FirstTime, 'isRepeat' | 'at'> = { isRepeat: false, at: Date.now() },
  ): Promise<Skill> {
    const { reader, baseVersion, by, isReviewer = false, draft } = registration;
    const { scope, name } = draft.skill;
    const versions = isRepeat ? await procedural.versions(scope, name) : [];
    const stored = versions.find(({ history: [first] = [] }) => first?.from === null && first.at === at);
    if (stored !== undefined) {
      await this.requestVerification(stored);
      return stored;
    }
    const candidate = await this.completed(procedural, registration, signal);
    const base = baseVersion === 0 ? {} : { baseVersion };
    return this.store(procedural, candidate, reader.tenant, { ...base, by, isReviewed: isReviewer, at });
  }

  /**
   * What is left once it is known what a skill calls: it is stored, and sent to verification.
   *
   * @param tenant whose settings hold
   * @param options.at when it was made, ms since 1970
   * @throws EtudeError as `registerSkill`
   */
  async store(
    procedural: ProceduralMemory,
    candidate: Skill,
    tenant: string,
    { at, ...options }: Parameters<typeof registerSkill>[1] & { readonly at: number },
  ): Promise<Skill> {
    const { settings } = await this.parts.settings.get(tenant, candidate.scope.agent);
    const stored = await registerSkill(candidate, options, { procedural, settings, clock: { now: () => at } });
    await this.requestVerification(stored);
    return stored;
  }

  /** Of a candidate. The same again is the same job. */
  async requestVerification(skill: Skill): Promise<void> {
    if (skill.status === 'candidate') await this.parts.producer.add(SkillVerify, jobOf(skill));
  }

  /**
   * What registering these would be refused for, one after the other, before any is stored.
   *
   * @param candidates as `completed` answers them, all for the same readers
   * @throws EtudeError FAILED_PRECONDITION, where skills are switched off or there are too many among others
   */
  async requireRegistrable(procedural: ProceduralMemory, tenant: string, candidates: readonly Skill[]): Promise<void> {
    const planned = new Set<string>();
    for (const candidate of candidates) {
      const { settings } = await this.parts.settings.get(tenant, candidate.scope.agent);
      const isNew = await requireRegistrable(candidate, { procedural, settings, clock: { now: Date.now } }, planned);
      if (isNew) planned.add(candidate.name);
    }
  }

  /** What calls this skill, which is in use now, gets a version pinned to it, and is verified. Repeating it changes nothing. */
  async renewCallers(procedural: ProceduralMemory, skill: Skill): Promise<void> {
    const requestVerification = async (version: Skill) => {
      await this.parts.producer.add(SkillVerify, jobOf(version));
    };
    await reverifyDependents(skill, { procedural, clock: { now: Date.now }, requestVerification });
  }

  /** Once it is settled, or as it stands when waiting makes no sense any more. */
  async settled(procedural: ProceduralMemory, skill: Skill, patience: Patience): Promise<Skill> {
    return skill.status === 'candidate' || skill.status === 'verified' ? this.verified(procedural, skill, patience) : skill;
  }

  /**
   * Verified, again where it was before, or as it stands when waiting makes no sense any more; its verification goes on then.
   *
   * @throws the EtudeError that verification died of; the signal's reason
   */
  async verified(procedural: ProceduralMemory, skill: Skill, { signal, waitMs }: Patience): Promise<Skill> {
    const late = AbortSignal.timeout(Math.max(1, waitMs));
    try {
      await this.parts.producer.addAndWait(SkillVerify, jobOf(skill), AbortSignal.any([signal, late]));
      const { scope, name, version } = skill;
      return (await procedural.versions(scope, name)).find((one) => one.version === version) ?? skill;
    } catch (error) {
      signal.throwIfAborted();
      if (late.aborted || isAbort(error)) return skill;
      throw error;
    }
  }
}

/** Each change of a skill's life is another round of verification. */
function jobOf(skill: Skill) {
  const round = (skill.history ?? []).length;
  return verificationOf(skill, round > 1 ? round : undefined);
}

/** Tests are calls of a function, or runs of a program. */
function testProblems({ kind, entryPoint, tests, heldOut = [] }: Skill): Violation[] {
  if (kind !== 'function') return [];
  const wrong = entryPoint === null ? 'call' : 'io';
  const description =
    entryPoint === null ? 'calls a function, and this is a program' : `runs a program, and this is the function ${entryPoint}`;
  const wrongIn = (list: Skill['tests'], field: string) =>
    list.flatMap((test, index) => (test.kind === wrong ? [{ field: `${field}[${index}]`, description }] : []));
  return [...wrongIn(tests, 'skill.tests'), ...wrongIn(heldOut, 'skill.held_out_tests')];
}
