import { isAbort } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { SkillVerify, verificationOf } from '@etude/contracts/queues';
import type { Clock } from '@etude/domain/ports/clock';
import type { CodeAnalyser, ProofChecker } from '@etude/domain/ports/verification';
import type { MemoryOutbox, ProceduralMemory } from '@etude/domain/ports/memory';
import type { Sandboxes } from '@etude/domain/ports/sandboxes';
import type { SkillReader } from '@etude/domain/skills/life/find-skill';
import { registerSkill } from '@etude/domain/skills/life/register-skill';
import type { TemplateFor } from '@etude/domain/skills/life/skill-packages';
import { pinnedTo } from '@etude/domain/skills/proof/bundle-code';
import { inspectCode, problemTexts, undeclaredProblems } from '@etude/domain/skills/proof/inspect-code';
import { reverifyDependents } from '@etude/domain/skills/proof/admit-skill';
import type { SkillWishes } from '@etude/domain/tools/tool-definition';
import type { AgentSettingsStore } from '@etude/queue/agents/agent-settings-store';
import type { ToolCalls } from '@etude/queue/agents/tool-sessions';
import type { WantedSkills } from '@etude/queue/agents/wanted-skills';
import type { Producer } from '@etude/queue/jobs/producer';
import type { MemoryAccess } from '../calls/memory-access.js';
import { invalid, invalidField, refuseAny } from '@etude/contracts/wire/validation';
import type { CheckedDraft } from './skill-draft.js';

export interface SkillDeps {
  readonly memory: MemoryAccess;
  readonly sandboxes: Sandboxes;
  readonly outbox: MemoryOutbox;
  readonly checker: ProofChecker;
  readonly analyser: CodeAnalyser;
  readonly clock: Clock;
  /** Share of a skill's mutants (deliberately broken copies) that its tests must detect. */
  readonly mutationScoreMin: number;
  /** The sandbox template that has the packages of a skill; throws if there is none. */
  readonly templateFor: TemplateFor;
  readonly settings: AgentSettingsStore;
  readonly registration: SkillRegistration;
  readonly wanted: WantedSkills;
  /** Stores wishes (requests for skills) of callers who are no reviewers, with secrets masked. */
  readonly wishes: SkillWishes;
  readonly toolCalls: ToolCalls;
}

export interface Registration {
  readonly draft: CheckedDraft;
  /** The caller as a reader. Dependencies are pinned to skills that the caller can read. */
  readonly reader: SkillReader;
  /** The version that was edited; 0: the newest. */
  readonly baseVersion: number;
  /** The name for the history. */
  readonly by: string;
  /** Whether the caller may also approve the skill. */
  readonly isReviewer?: boolean;
}

export interface Patience {
  readonly signal: AbortSignal;
  readonly waitMs: number;
}

/** Registers skills: inspects the code with Python's parser, pins dependencies, stores a candidate, and starts its verification. */
export class SkillRegistration {
  constructor(private readonly parts: Pick<SkillDeps, 'sandboxes' | 'templateFor' | 'settings'> & { readonly producer: Producer }) {}

  /**
   * The candidate with its entry point and contract, read from the code, and its pinned dependencies. Stores nothing and doesn't run the code.
   *
   * @throws EtudeError INVALID_ARGUMENT with the line; FAILED_PRECONDITION if a called skill or a package is missing; SANDBOX_UNAVAILABLE
   */
  async completed(procedural: ProceduralMemory, { draft, reader }: Registration, signal: AbortSignal): Promise<Skill> {
    const { skill, isProgram } = draft;
    this.parts.templateFor(skill.packages ?? []);
    // A procedure is text, not Python.
    if (skill.kind === 'procedure') return skill;
    const { tenant, agent, user } = reader;
    const place = { sandboxes: this.parts.sandboxes, tenant, owner: { agent, user } };
    const found = await inspectCode({ ...skill, isProgram }, place, signal);
    if ('problems' in found) throw invalid(problemTexts(found.problems).map((description) => ({ field: 'skill.code', description })));
    if (skill.kind === 'snippet' && found.kind === 'function')
      throw invalidField('skill.kind', `must be "function" with tests, because the code defines the function ${found.entryPoint}`);
    const named: Skill = { ...skill, entryPoint: found.entryPoint, kind: found.kind === 'snippet' ? 'snippet' : skill.kind };
    refuseAny(undeclaredProblems(skill.parameters, found.contract).map((description) => ({ field: 'skill.parameters', description })));
    return pinnedTo(found.uses, named, procedural);
  }

  /**
   * Registers a skill. A repeat returns the stored version with the same content.
   *
   * @param at time of creation, ms since 1970
   * @throws EtudeError as `completed`; ABORTED if another version is the newest; FAILED_PRECONDITION if the agent has too many skills
   */
  async register(procedural: ProceduralMemory, registration: Registration, signal: AbortSignal, at: number = Date.now()): Promise<Skill> {
    const { reader, baseVersion, by, isReviewer = false } = registration;
    const candidate = await this.completed(procedural, registration, signal);
    const base = baseVersion === 0 ? {} : { baseVersion };
    return this.store(procedural, candidate, reader.tenant, { ...base, by, isReviewed: isReviewer, at });
  }

  /**
   * Stores a candidate whose dependencies are pinned already, and starts its verification.
   *
   * @param tenant the tenant whose settings apply
   * @param options.at time of creation, ms since 1970
   * @throws EtudeError as `registerSkill`
   */
  async store(
    procedural: ProceduralMemory,
    candidate: Skill,
    tenant: string,
    { at, ...options }: Parameters<typeof registerSkill>[1] & { readonly at: number },
  ): Promise<Skill> {
    const { settings } = await this.parts.settings.get(tenant, candidate.scope.agent);
    const stored = await registerSkill({ ...candidate, createdAt: at, updatedAt: at }, options, { procedural, settings });
    await this.requestVerification(stored);
    return stored;
  }

  /** Starts the verification of a candidate. Repeating it adds no second job. */
  async requestVerification(skill: Skill): Promise<void> {
    if (skill.status === 'candidate') await this.parts.producer.add(SkillVerify, jobOf(skill));
  }

  /** Stores new versions of the skills that call this active skill, pinned to it, and starts their verification. Safe to repeat. */
  async renewCallers(procedural: ProceduralMemory, skill: Skill): Promise<void> {
    const requestVerification = (version: Skill) => this.requestVerification(version);
    await reverifyDependents(skill, { procedural, clock: { now: Date.now }, requestVerification });
  }

  /** Waits for the verification of a candidate or verified skill. @returns the version after the wait, verified or not */
  async settled(procedural: ProceduralMemory, skill: Skill, patience: Patience): Promise<Skill> {
    return skill.status === 'candidate' || skill.status === 'verified' ? this.verified(procedural, skill, patience) : skill;
  }

  /**
   * The version after verification, even if it was verified before. If the wait ends first, the current version; verification continues.
   *
   * @throws the EtudeError of a failed verification; the signal's reason
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

/** The number of status changes is the round, so that each change allows another verification. */
function jobOf(skill: Skill) {
  const round = (skill.history ?? []).length;
  return verificationOf(skill, round > 1 ? round : undefined);
}
