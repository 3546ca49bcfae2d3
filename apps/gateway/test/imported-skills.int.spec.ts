import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { Skill } from '@etude/contracts/memory';
import { SkillVerify } from '@etude/contracts/queues';
import { keyOf } from '@etude/domain/skills/life/skill-life';
import { dependencyOn } from '@etude/domain/skills/proof/bundle-code';
import { NEW_YEAR, skillOf } from '@etude/domain/testing/memory-records';
import type { Memory as OpenedMemory } from '@etude/memory/memory';
import { beforeAll, expect, it } from 'vitest';
import { collect, gatewayForFile } from './gateway.harness.js';
import { signerAt, storeSkill, writeProofKeys } from './skill-store.js';

const rig = gatewayForFile({ ETUDE_SKILLS_ENABLED: 'true', ETUDE_SKILLS_APPROVAL: 'automatic' });
const signer = signerAt(writeProofKeys(rig.dir).signingPath);

/** As workers would: another connection to the same file. */
let memory: OpenedMemory;
beforeAll(async () => {
  memory = await rig.openMemory();
});

let agents = 0;
/** No record of an agent with this name exists. */
const newAgent = () => `agent${(agents += 1)}x`;
const ownerOf = (agent: string) => ({ tenant: 'acme', agent, user: null });
/** Code of its own, since marks go with the code. */
const keep = (agent: string, { code = '', ...skill }: Partial<Skill>) =>
  storeSkill(memory.procedural, skillOf({ status: 'active', code: `${code}\n"${agent}"`, ...skill, scope: ownerOf(agent) }), signer);
const tell = (agent: string, name: string) => rig.client(Memory).storeProcedure({ agent, name, prompt: `How to ${name} as ${agent}.` });
const versionsOf = (agent: string, name: string) => memory.procedural.versions(ownerOf(agent), name);

async function limit(agent: string, settings: { readonly maxSkills?: number; readonly enabled?: boolean }): Promise<void> {
  await rig.client(Agents, 'rev').updateAgent({
    agent: { name: `agents/${agent}`, proceduralMemorySettings: { enabled: true, ...settings } },
    updateMask: { paths: ['enabled', 'max_skills'].map((name) => `procedural_memory_settings.${name}`) },
  });
}

/** The header, and the lines of an agent's skills, as if they were another's. */
async function linesFor(to: string, from: string): Promise<string[]> {
  const lines = (await collect(rig.client(Memory, 'rev').exportMemory({ agent: from }))).flatMap((sent) => sent.lines);
  return lines.filter((line, i) => i === 0 || line.includes('"kind":"skill"')).map((line) => line.replaceAll(from, to));
}

/** What a line says, changed. */
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

it('brings nothing into use that is out of use where it comes from', async () => {
  const [from, to] = [newAgent(), newAgent()];
  for (const status of ['archived', 'rejected', 'deprecated'] as const) await keep(from, { name: `was_${status}`, status, code: status });
  await keep(from, { name: 'grows', code: 'one' });
  await keep(from, { name: 'grows', code: 'two' });
  await keep(from, { name: 'reworded', status: 'archived' });
  await memory.procedural.store(skillOf({ name: 'reworded', code: `\n"${from}"`, description: 'Other words.', scope: ownerOf(from) }), {
    words: 'kept',
  });
  await limit(to, { maxSkills: 2 });
  expect(await imported(await linesFor(to, from))).toEqual({ added: 6, unchanged: 1, reasons: [] });
  for (const status of ['archived', 'rejected', 'deprecated'])
    expect(await versionsOf(to, `was_${status}`)).toMatchObject([
      { status: 'archived', statusReason: `imported; was ${status} where it came from` },
    ]);
  expect(await versionsOf(to, 'grows')).toMatchObject([
    { version: 2, code: `two\n"${to}"`, status: 'candidate' },
    { version: 1, code: `one\n"${to}"`, status: 'archived' },
  ]);
  expect(await versionsOf(to, 'reworded')).toMatchObject([{ version: 1, status: 'candidate', description: 'Other words.' }]);
  expect(await imported(await linesFor(to, from))).toEqual({ added: 0, unchanged: 7, reasons: [] });
});

it('never approves by itself what came in, and believes nothing of the tasks that it solved', async () => {
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

it('refuses what may not be registered, procedures in words too', async () => {
  const [from, to, off] = [newAgent(), newAgent(), newAgent()];
  await keep(from, { name: 'plain' });
  for (const name of ['one', 'two', 'three']) await tell(from, name);
  const [header = '', ...lines] = await linesFor(to, from);
  const line = lines.find((one) => one.includes('plain'));
  const named = ['json', 'class', 'skills'].map((name) => changed(line, () => ({ name })));
  const { added, reasons } = await imported([header, ...named]);
  expect({ added, reasons }).toEqual({
    added: 0,
    reasons: [
      'the name "class" is a word of Python itself',
      'the name "json" is that of a module that code imports',
      'the name "skills" is that of a module that code imports',
    ],
  });
  await limit(to, { maxSkills: 1 });
  expect(await imported([header, ...lines.filter((one) => one !== line)])).toMatchObject({
    added: 1,
    reasons: [expect.anything(), expect.anything()],
  });
  await limit(off, { enabled: false });
  const refused = await imported(await linesFor(off, from));
  expect(refused.added).toBe(0);
  expect(refused.reasons.every((reason) => reason.includes('learns no skills'))).toBe(true);
  expect(await memory.procedural.list({ ...ownerOf(off) }, { limit: 9 })).toEqual([]);
});

it('has callers wait for what they call, and pins them to what came in', async () => {
  const [from, to] = [newAgent(), newAgent()];
  const base = await keep(from, { name: 'z_base' });
  await keep(from, { name: 'a_call', code: 'from skills import z_base', dependencies: [dependencyOn(base)] });
  const lines = await linesFor(to, from);
  await keep(to, { name: 'z_base', code: 'another, before', status: 'deprecated' });
  expect(await imported(lines)).toEqual({
    added: 1,
    unchanged: 0,
    reasons: [
      'a_call calls skills.z_base, and there is no active skill of that name that its readers can read; register or promote it first, or take the call out',
    ],
  });
  const waiting = await keep(to, { name: 'z_base', status: 'pending_review' });
  const approval = { key: keyOf(waiting), to: 'active', by: 'rev', reason: 'looked at', at: NEW_YEAR } as const;
  const [here = waiting] = await memory.procedural.move([approval]);
  expect(here).toMatchObject({ version: 2, status: 'active' });
  expect(await imported(lines.toReversed().toSorted((a) => (a.includes('"etude"') ? -1 : 1)))).toEqual({
    added: 1,
    unchanged: 1,
    reasons: [],
  });
  expect(await versionsOf(to, 'a_call')).toMatchObject([{ status: 'candidate', dependencies: [dependencyOn(here)] }]);
  expect(await imported(lines)).toEqual({ added: 0, unchanged: 2, reasons: [] });
});

it('sends a candidate to verification again where the import before was cut off', async () => {
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
