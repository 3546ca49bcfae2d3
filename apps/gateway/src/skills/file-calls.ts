import type { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import { findSkills } from '@etude/documents/skill-folder/file-collector';
import { folderFromSkill, withoutTests } from '@etude/documents/skill-folder/skill-folder';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { hasHiddenTests, skillDigest } from '@etude/domain/skills/content-digest';
import { isWithoutDependency } from '@etude/domain/skills/proof/bundle-code';
import type { Handlers } from '../calls/calls.js';
import { once, versionsWork } from '../calls/once.js';
import { askedSkills, authorOf, meantVersion, readsHiddenTests } from '../readers/readers.js';
import { skillMessage } from '../readers/skill-message.js';
import type { Registration, SkillDeps } from '../registration/skill-registration.js';
import { invalidField } from '@etude/contracts/wire/validation';
import { importedSkill, readImport, sourceOfImport } from './import-skills.js';

/** Maximum of skills in one import. */
const SKILLS_MAX = 20;

const WITHOUT_TESTS = 'exported without its tests, because tests from tasks may contain hidden cases. A reviewer key exports them too';

/** Import and export in the Agent Skills format: `etude.v1.Skills`. */
export const fileCalls = {
  async importSkill(requests, call, deps) {
    const { tenant, name: by, signal } = call;
    const { head, came } = await readImport(requests, signal);
    const { dryRun, requestId } = head;
    const { reader, scope } = authorOf(call, head, 'head');
    const { found, notes } = findSkills(came.files);
    if (found.length > SKILLS_MAX) throw invalidField('file', `must not hold more than ${SKILLS_MAX} skills; it holds ${found.length}`);
    const source = sourceOfImport(came.files);
    const imported = found.map((folder) => importedSkill(folder, scope, source, Date.now()));
    const memory = await deps.memory.open();
    const registrations = imported.map((draft): Registration => ({ draft, reader, baseVersion: 0, by }));
    let waiting: readonly string[] = [];
    const { again, resultOf } = versionsWork(memory.procedural, call);
    const identified = { tenant, requestId, method: 'ImportSkill', body: { source, scope, dryRun } };
    const skills = await once<readonly Skill[]>(
      memory,
      identified,
      { scope },
      {
        act: async ({ at }) => {
          const looked = await lookedAt(deps, memory.procedural, registrations, signal);
          ({ waiting } = looked);
          if (dryRun) return looked.checked.map((skill) => ({ ...skill, digest: skillDigest(skill) }));
          const stored: Skill[] = [];
          for (const one of looked.ready) stored.push(await deps.registration.register(memory.procedural, one, signal, at));
          return stored;
        },
        again,
        // With waiting skills, no result is stored. A repeat then stores the skills whose dependencies became active.
        resultOf: (done) => (dryRun || waiting.length > 0 ? null : resultOf(done)),
      },
    );
    const said = [...imported.flatMap((one) => one.notes), ...waiting];
    return { skills: skills.map(skillMessage), notes: [...came.notes, ...notes, ...said] };
  },

  async exportSkill(request, call, deps) {
    const { procedural } = await deps.memory.open();
    const skill = await meantVersion(procedural, askedSkills(call, request), request, ['active']);
    const hidden = hasHiddenTests(skill);
    const isWhole = !hidden || (!request.withoutHiddenTests && readsHiddenTests(call.roles, skill));
    // Marks the tests as hidden for an import elsewhere.
    const whole = hidden && skill.tests.length > 0 ? { ...skill, hiddenTests: true } : skill;
    const files = folderFromSkill(isWhole ? whole : withoutTests(skill));
    return { files: files.map(({ path, bytes: data }) => ({ path, data })), notes: isWhole ? [] : [WITHOUT_TESTS] };
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

interface Looked {
  readonly ready: readonly Registration[];
  /** The skills of `ready` as they would be stored. */
  readonly checked: readonly Skill[];
  /** One message for each skill that waits for a called skill to become active, for example one of the same import. */
  readonly waiting: readonly string[];
}

/** Reads all skills before any is stored. @throws EtudeError as registering each of them */
async function lookedAt(
  { registration }: SkillDeps,
  procedural: ProceduralMemory,
  registrations: readonly Registration[],
  signal: AbortSignal,
): Promise<Looked> {
  const ready: Registration[] = [];
  const checked: Skill[] = [];
  const waiting: string[] = [];
  for (const one of registrations) {
    try {
      checked.push(await registration.completed(procedural, one, signal));
      ready.push(one);
    } catch (error) {
      if (!isWithoutDependency(error)) throw error;
      waiting.push(`${(error as Error).message}; then import the same again`);
    }
  }
  return { ready, checked, waiting };
}
