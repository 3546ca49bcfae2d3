import { errorCode, type EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import type { SkillReader } from '@etude/domain/skills/life/find-skill';
import type { RegisteredSkill, SkillRegistrar, ToolSkillDraft } from '@etude/domain/tools/tool-ports';
import { candidateFields, digested } from '../registration/skill-draft.js';
import type { SkillDeps } from '../registration/skill-registration.js';
import { bundled } from './tool-skills.js';

/** How long an agent waits for verification. Small skills take a second or two. */
const WAIT_MS = 60_000;
/** Codes of mistakes in the skill itself. */
const REFUSALS: ReadonlySet<string> = new Set([
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'ABORTED',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
]);

const STATUSES: Readonly<Record<SkillStatus, RegisteredSkill['status']>> = {
  candidate: 'waiting',
  verified: 'waiting',
  pending_review: 'pending_review',
  active: 'registered',
  rejected: 'rejected',
  // The same content was registered earlier and taken out of use since.
  deprecated: 'rejected',
  archived: 'rejected',
};

/** Registers skills that agents write. The owner is the calling agent with its user. */
export class AgentSkillRegistrar implements SkillRegistrar {
  constructor(private readonly deps: SkillDeps) {}

  async inspect(
    reader: SkillReader,
    { name, code, entryPoint }: Pick<ToolSkillDraft, 'name' | 'code' | 'entryPoint'>,
    signal: AbortSignal,
  ) {
    const { memory, registration } = this.deps;
    const { procedural } = await memory.open();
    const bare = { name, code, entryPoint, description: '', parameters: [], tests: [], tags: [], category: null, examplePrompts: [] };
    const draft = { skill: candidateOf(bare, reader), isProgram: false };
    try {
      const skill = await registration.completed(procedural, { draft, reader, baseVersion: 0, by: '' }, signal);
      const runnable = await bundled(reader, skill.dependencies ?? [], code, this.deps);
      return { entryPoint: skill.entryPoint, runnable };
    } catch (error) {
      return { problems: refusalsOf(error) };
    }
  }

  async register(reader: SkillReader, draft: ToolSkillDraft, by: string, signal: AbortSignal): Promise<RegisteredSkill> {
    const { memory, registration } = this.deps;
    const { procedural } = await memory.open();
    const asked = { draft: { skill: candidateOf(draft, reader), isProgram: false }, reader, baseVersion: 0, by };
    try {
      const stored = await registration.register(procedural, asked, signal);
      const { status, statusReason, name, version, evidence } = await registration.settled(procedural, stored, { signal, waitMs: WAIT_MS });
      const isUsed = status === 'active';
      return { status: STATUSES[status], reason: isUsed ? '' : reasonOf(status, statusReason), name, version, evidence };
    } catch (error) {
      return { status: 'rejected', reason: refusalsOf(error).join('; '), name: draft.name, version: 0, evidence: [] };
    }
  }
}

function reasonOf(status: SkillStatus, reason: string): string {
  if (STATUSES[status] === 'waiting') return 'its verification is still running; search for it later';
  return reason === '' ? `the same content is ${status}` : reason;
}

/** The reasons for refusing a skill. @throws any error that the skill didn't cause */
function refusalsOf(error: unknown): readonly string[] {
  if (!REFUSALS.has(errorCode(error))) throw error;
  const { message, details } = error as EtudeError;
  const said = (details?.violations ?? []).map(({ field, description }) => `${field.replace(/^skill\./, '')}: ${description}`);
  return said.length > 0 ? said : [message];
}

function candidateOf(draft: ToolSkillDraft, { tenant, agent, user }: SkillReader): Skill {
  const { name, description, code, entryPoint, parameters, tests, tags, category, examplePrompts } = draft;
  return digested({
    ...candidateFields({ tenant, agent, user }, Date.now()),
    name,
    kind: 'function',
    description,
    code,
    entryPoint,
    parameters: [...parameters],
    tests: [...tests],
    tags: [...new Set(tags)],
    cues: [...examplePrompts],
    sources: [],
    model: null,
    scripted: false,
    origin: 'tool',
    ...(category === null ? {} : { category }),
    ...(examplePrompts.length === 0 ? {} : { examplePrompts: [...examplePrompts] }),
  });
}
