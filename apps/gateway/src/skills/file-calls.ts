import type { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import type { Skill } from '@etude/contracts/memory';
import { findSkills } from '@etude/documents/skill-folder/file-collector';
import { folderFromSkill, withoutTests } from '@etude/documents/skill-folder/skill-folder';
import type { ProceduralMemory } from '@etude/domain/ports/memory';
import { hasHiddenTests, skillDigest } from '@etude/domain/skills/content-digest';
import type { SkillReader } from '@etude/domain/skills/life/find-skill';
import type { Handlers } from '../calls/calls.js';
import { answeredBefore, type ClaimedRequest, claimOnce, once, versionWork } from '../calls/once.js';
import { authorOf } from '../readers/readers.js';
import { askedSkills, meantVersion, readsHiddenTests } from '../readers/skill-access.js';
import { skillMessage } from '../readers/skill-message.js';
import type { Registration, SkillDeps } from '../registration/skill-registration.js';
import { invalidField } from '../wire/validation.js';
import { importedSkill, orderImport, type ReadImport, readImport, sourceOfImport, storeImport } from './import-skills.js';

/** Of one import. */
const SKILLS_MAX = 20;

const WITHOUT_TESTS =
  'without its tests: they were made from the cases of tasks, some of which are hidden; the key of a reviewer exports them too';

interface Importing {
  readonly reader: SkillReader;
  readonly claimed: ClaimedRequest;
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

interface Looking extends Pick<Importing, 'reader' | 'signal'> {
  /** Not stored by the same request before. */
  readonly isNew: (one: Registration) => boolean;
}

/** Skills in the Agent Skills format, of `etude.v1.Skills`. */
export const fileCalls = {
  async importSkill(requests, call, deps) {
    const { tenant, name: by, signal } = call;
    const { head, came } = await readImport(requests, signal);
    const { reader, scope } = authorOf(call, head, 'head');
    const { found, notes } = findSkills(came.files);
    if (found.length > SKILLS_MAX) throw invalidField('file', `must not hold more than ${SKILLS_MAX} skills; it holds ${found.length}`);
    const source = sourceOfImport(came.files);
    const imported = found.map((folder) => importedSkill(folder, scope, source, Date.now()));
    const registrations = imported.map((draft): Registration => ({ draft, reader, baseVersion: 0, by }));
    const memory = await deps.memory.open();
    const asked = { tenant, requestId: head.requestId, method: 'ImportSkill', body: { source, scope, dryRun: head.dryRun } };
    const claimed = await claimOnce(memory, asked, { scope });
    const answered = await importOnce(deps, memory.procedural, registrations, { reader, claimed, dryRun: head.dryRun, signal });
    const said = imported.flatMap((one) => one.notes);
    return { skills: answered.skills.map(skillMessage), notes: [...came.notes, ...notes, ...said, ...answered.notes] };
  },

  async exportSkill(request, call, deps) {
    const { procedural } = await deps.memory.open();
    const skill = await meantVersion(procedural, askedSkills(call, request), request, ['active']);
    const hidden = hasHiddenTests(skill);
    const isWhole = !hidden || (!request.withoutHiddenTests && readsHiddenTests(call.roles, skill));
    // Wherever it goes, its tests stay hidden from those who may not see them here.
    const whole = hidden && skill.tests.length > 0 ? { ...skill, hiddenTests: true } : skill;
    const files = folderFromSkill(isWhole ? whole : withoutTests(skill));
    return { files: files.map(({ path, bytes: data }) => ({ path, data })), notes: isWhole ? [] : [WITHOUT_TESTS] };
  },
} satisfies Handlers<typeof Skills, SkillDeps>;

/** What was stored by the same request is answered as it is now; what waited then is stored where it need not wait any more. */
async function importOnce(
  deps: SkillDeps,
  procedural: ProceduralMemory,
  registrations: readonly Registration[],
  { reader, claimed, dryRun, signal }: Importing,
): Promise<{ readonly skills: readonly Skill[]; readonly notes: readonly string[] }> {
  const work = versionWork(procedural, reader);
  const before = new Map<string, Skill>();
  for (const { draft } of registrations) {
    const known = await answeredBefore(claimed, { ...work, part: draft.skill.name });
    if (known !== null) before.set(draft.skill.name, known);
  }
  const isNew = ({ draft }: Registration) => !before.has(draft.skill.name);
  if (!registrations.some(isNew)) return { skills: [...before.values()], notes: [] };
  const { ready, notes } = await looked(deps, procedural, registrations, { reader, isNew, signal });
  if (dryRun) return { skills: ready.map(({ checked }) => ({ ...checked, digest: skillDigest(checked) })), notes };
  const { registration } = deps;
  const stored = await storeImport(ready, ({ one }) =>
    once(claimed, { ...work, part: one.draft.skill.name, act: () => registration.registerOnce(procedural, one, claimed, signal) }),
  );
  return { skills: [...before.values(), ...stored], notes };
}

/** All of them are looked at before any is stored. @throws EtudeError as registering each of them */
async function looked(
  deps: SkillDeps,
  procedural: ProceduralMemory,
  registrations: readonly Registration[],
  { reader, isNew, signal }: Looking,
) {
  const { registration } = deps;
  const read: ReadImport[] = [];
  for (const one of registrations) read.push({ registration: one, uses: (await registration.read(one, signal)).uses });
  const order = await orderImport(procedural, read);
  const ready: Array<{ readonly one: Registration; readonly checked: Skill }> = [];
  for (const one of order.ready.filter(isNew)) ready.push({ one, checked: await registration.completed(procedural, one, signal) });
  const candidates = ready.map(({ checked }) => checked);
  await registration.requireRegistrable(procedural, reader, candidates);
  return { ready, notes: order.waiting.filter((one) => isNew(one.registration)).map(({ note }) => note) };
}
