import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { Skill } from '@etude/contracts/memory';
import { SkillVerify } from '@etude/contracts/queues';
import { skillOf } from '@etude/domain/testing/memory-records';
import type { Memory as OpenedMemory } from '@etude/memory/memory';
import { beforeAll, expect, it } from 'vitest';
import { collect, gatewayForFile } from './gateway.harness.js';
import { newSigner, storeSkill } from './skill-store.js';

const rig = gatewayForFile({ ETUDE_SKILLS_ENABLED: 'true', ETUDE_SKILLS_APPROVAL: 'automatic' });
const signer = newSigner(rig.dir);

/** A second connection to the same file, like that of a worker. */
let memory: OpenedMemory;
beforeAll(async () => {
  memory = await rig.openMemory();
});

let agents = 0;
/** A name that no record has. */
const newAgent = () => `agent${(agents += 1)}x`;
const ownerOf = (agent: string) => ({ tenant: 'acme', agent, user: null });
/** Stores a skill with its own code, because marks of untrusted code apply to all copies. */
const keep = (agent: string, { code = '', ...skill }: Partial<Skill>) =>
  storeSkill(memory.procedural, skillOf({ status: 'active', code: `${code}\n"${agent}"`, ...skill, scope: ownerOf(agent) }), signer);
const tell = (agent: string, name: string) => rig.client(Memory).storeProcedure({ agent, name, prompt: `How to ${name} as ${agent}.` });
const versionsOf = (agent: string, name: string) => memory.procedural.versions(ownerOf(agent), name);

/** The header of an export and the skills of `from`, with `to` in place of the name `from`. */
async function linesFor(to: string, from: string): Promise<string[]> {
  const lines = (await collect(rig.client(Memory, 'rev').exportMemory({ agent: from }))).flatMap((sent) => sent.lines);
  return lines.filter((line, i) => i === 0 || line.includes('"kind":"skill"')).map((line) => line.replaceAll(from, to));
}

/** The line of a skill with changed fields. */
function changed(line: string | undefined, change: (skill: Skill) => Partial<Skill>): string {
  const { body, fields, key, ...record } = JSON.parse(line ?? '') as { body: string; fields: object; key: string };
  const { value } = JSON.parse(body) as { value: Skill };
  const skill = { ...value, ...change(value) };
  const fingerprint = skill.fingerprints.length === 0 ? {} : { fingerprint: skill.fingerprints };
  const named = { ...fields, id: `${skill.name}@${skill.version}`, name: skill.name, ...fingerprint };
  return JSON.stringify({ ...record, key: key.replace(value.name, skill.name), fields: named, body: JSON.stringify({ value: skill }) });
}

async function imported(lines: readonly string[]) {
  const { added, unchanged, refused } = await rig.client(Memory).importMemory({ lines: [...lines] });
  return { added: Number(added), unchanged: Number(unchanged), reasons: refused.map(({ reason }) => reason) };
}

it('approves no imported skill automatically, and ignores its claims about solved tasks', async () => {
  const [from, to] = [newAgent(), newAgent()];
  await keep(from, { name: 'plain', examplePrompts: ['Sum it.'] });
  await tell(from, 'moor_boat');
  const [header = '', ...lines] = await linesFor(to, from);
  const claims = { fingerprints: ['f'.repeat(64)], cues: ['What is the capital of France?'] };
  const claimed = lines.map((line) => changed(line, () => claims));
  expect(await imported([header, ...claimed])).toMatchObject({ added: 2, reasons: [] });
  for (const name of ['plain', 'moor_boat']) {
    const [skill] = await versionsOf(to, name);
    expect(skill).toMatchObject({ status: 'candidate', origin: 'import', fingerprints: [], cues: name === 'plain' ? ['Sum it.'] : [] });
    expect(skill?.untrusted).toContainEqual(expect.stringMatching(/^it came in with imports\/i[0-9a-f]{32}$/));
  }
});

it('requests verification again if the import before stopped midway', async () => {
  const [from, to] = [newAgent(), newAgent()];
  await keep(from, { name: 'plain' });
  const lines = await linesFor(to, from);
  await imported(lines);
  const jobs = rig.producer.queue(SkillVerify.name);
  const ofImport = async () =>
    (await jobs.getJobs(['waiting', 'prioritized'])).filter(({ data }) => JSON.stringify(data).includes(`"${to}"`));
  const [lost] = await ofImport();
  await lost?.remove();
  expect(await ofImport()).toEqual([]);
  expect(await imported(lines)).toMatchObject({ unchanged: 1 });
  expect(await ofImport()).toHaveLength(1);
});
