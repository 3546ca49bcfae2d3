import type { Skill } from '@etude/contracts/memory';
import type { SkillStatus } from '@etude/contracts/skill-proof';
import { findSkill, searchSkills, type SkillReader } from '@etude/domain/skills/life/find-skill';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { bundledCode, loadFunctions } from '@etude/domain/skills/proof/bundle-code';
import { loadedWith, useSkill } from '@etude/domain/skills/proof/use-skill';
import type { RegisteredSkill, SkillRegistrar, ToolSkillDraft } from '@etude/domain/tools/register-skill-tool';
import type { ToolSkills } from '@etude/domain/tools/tool-definition';
import { errorCode, type EtudeError } from '@etude/contracts/errors';
import type { SkillDeps } from '../registration/skill-registration.js';
import { everySkillBehind } from '../readers/skill-lists.js';
import { newCandidate } from '@etude/domain/skills/life/skill-life';

/** Most skills in a listing by category; search finds further skills. */
const LISTED_MAX = 10_000;

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

export function toolSkills(deps: SkillDeps): { readonly skills: ToolSkills; readonly registrar: SkillRegistrar } {
  const { registration } = deps;
  const opened = async () => (await deps.memory.open()).procedural;
  const skills: ToolSkills = {
    search: async (reader, query) => searchSkills(await opened(), reader, query),
    find: async (reader, name) => findSkill(await opened(), reader, name),
    async list(reader) {
      const listed: Skill[] = [];
      for await (const skill of everySkillBehind(await opened(), { ...reader, everyUser: false }, { status: 'active', tags: [] }, null))
        if (listed.push(skill) >= LISTED_MAX) break;
      return listed;
    },
    async countOffers(shown) {
      if (shown.length > 0) await (await opened()).countOffers(shown.map(keyOf));
    },
    use: async (reader, call, signal) => useSkill({ reader, ...call }, { ...deps, procedural: await opened() }, signal),
    load: async (reader, names) => loadFunctions(reader, names, { ...deps, procedural: await opened() }),
    async bundle({ tenant, agent, user }, pins, code) {
      const caller = { name: 'the code', scope: { tenant, agent, user }, dependencies: [...pins] };
      const { needed, ...place } = await loadedWith(caller, { ...deps, procedural: await opened() });
      return { code: bundledCode(code, needed, pins), ...place };
    },
  };
  const registrar: SkillRegistrar = {
    async inspect(reader, { name, code, entryPoint }, signal) {
      const bare = { name, code, entryPoint, description: '', parameters: [], tests: [], tags: [], example_prompts: [] };
      const draft = { skill: candidateOf(bare, reader), isProgram: false };
      try {
        const skill = await registration.completed(await opened(), { draft, reader, baseVersion: 0, by: '' }, signal);
        return { entryPoint: skill.entryPoint, runnable: await skills.bundle(reader, skill.dependencies ?? [], code) };
      } catch (error) {
        return { problems: refusalsOf(error) };
      }
    },
    async register(reader, draft, by, signal) {
      const procedural = await opened();
      const asked = { draft: { skill: candidateOf(draft, reader), isProgram: false }, reader, baseVersion: 0, by };
      try {
        const stored = await registration.register(procedural, asked, signal);
        const { status, statusReason, name, version, evidence } = await registration.settled(procedural, stored, {
          signal,
          waitMs: WAIT_MS,
        });
        return { status: STATUSES[status], reason: status === 'active' ? '' : reasonOf(status, statusReason), name, version, evidence };
      } catch (error) {
        return { status: 'rejected', reason: refusalsOf(error).join('; '), name: draft.name, version: 0, evidence: [] };
      }
    },
  };
  return { skills, registrar };
}

function reasonOf(status: SkillStatus, reason: string): string {
  if (STATUSES[status] === 'waiting') return 'the verification is still running; search for the skill later';
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
  const { name, description, code, entryPoint, tests, tags, category, example_prompts: examplePrompts } = draft;
  const parameters = draft.parameters.map(({ default_value: defaultValue, ...one }) =>
    defaultValue === undefined ? one : { ...one, defaultValue },
  );
  return newCandidate({
    scope: { tenant, agent, user },
    at: Date.now(),
    name,
    kind: 'function',
    description,
    code,
    entryPoint,
    parameters,
    tests: [...tests],
    tags: [...new Set(tags)],
    cues: [...examplePrompts],
    sources: [],
    model: null,
    scripted: false,
    origin: 'tool',
    ...(category === undefined ? {} : { category }),
    ...(examplePrompts.length === 0 ? {} : { examplePrompts }),
  });
}
