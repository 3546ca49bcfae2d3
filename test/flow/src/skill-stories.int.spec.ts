import { fromJson, type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { SkillDraftSchema, Skills, SkillScope, SkillStatus } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

interface Caller {
  readonly agent: string;
  readonly user?: string;
}

interface Draft {
  readonly name: string;
  readonly description: string;
  readonly code: string;
  readonly tests: ReadonlyArray<{ readonly args: JsonValue[]; readonly expected: JsonValue }>;
}

let stack: TestStack;
let skills: ServiceClient<typeof Skills>;
let tools: ServiceClient<typeof Tools>;

beforeAll(async () => {
  stack = await startStack({ script: fileURLToPath(new URL('./skill-stories.yaml', import.meta.url)) });
  skills = createServiceClient(Skills, stack.address);
  tools = createServiceClient(Tools, stack.address);
});
afterAll(async () => {
  skills.close();
  tools.close();
  await stack.stop();
});

const named = (caller: Caller, name: string) => ({ ...caller, name: `skills/${name}` });
const register = (caller: Caller, { tests, ...draft }: Draft) => {
  const skill = fromJson(SkillDraftSchema, { ...caller, ...draft, tests: tests.map((call) => ({ call: { ...call } })) });
  return skills.registerSkill({ skill, wait: true }, { timeoutMs: 60_000 });
};
const search = async (caller: Caller, query: string) => {
  const { hits } = await skills.searchSkills({ ...caller, query, minSimilarity: 0.1 });
  return hits.map(({ skill }) => skill?.name.replace('skills/', ''));
};
/** The result as JSON; undefined where there is none. */
const use = async (caller: Caller, name: string, parameters: JsonObject) => {
  const { result } = await skills.useSkill({ ...named(caller, name), parameters });
  return result && toJson(ValueSchema, result);
};
const approve = async (caller: Caller, name: string) =>
  skills.approveSkill({ ...named(caller, name), digest: (await skills.getSkill(named(caller, name))).digest });
const versions = async (caller: Caller, name: string) =>
  (await skills.listSkillVersions(named(caller, name))).skills.map(({ version, status }) => `${version} ${SkillStatus[status]}`);

/** How often a model was asked so far. */
async function modelCalls(): Promise<number> {
  const response = await fetch(`${stack.modelUrl}/scripted/calls`);
  return ((await response.json()) as { calls: unknown[] }).calls.length;
}

const INITIALS: Draft = {
  name: 'initials',
  description: "Makes the initials of a person's full name.",
  code: `def initials(full_name: str) -> str:\n    """First letters of all parts, in capitals."""\n    return "".join(part[0].upper() for part in full_name.split())\n`,
  tests: [
    { args: ['ada lovelace'], expected: 'AL' },
    { args: ['grace brewster hopper'], expected: 'GBH' },
    { args: [''], expected: '' },
  ],
};

const area = (name: string, factor: string): Draft => ({
  name,
  description: `Area of a rectangle, for ${name}.`,
  code: `def ${name}(width: float, height: float) -> float:\n    """Width times height."""\n    if width < 0 or height < 0:\n        raise ValueError("a side is negative")\n    return ${factor}\n`,
  tests: [
    { args: [2, 3], expected: 6 },
    { args: [5, 1], expected: 5 },
    { args: [0, 7], expected: 0 },
  ],
});

const FLOOR: Draft = {
  name: 'floor_area',
  description: 'Area of all rooms of a floor.',
  code: `from skills import wall\n\n\ndef floor_area(rooms: list) -> float:\n    """Sum over rooms of width and height."""\n    return sum(wall(width, height) for width, height in rooms)\n`,
  // oxfmt-ignore
  tests: [
    { args: [[[2, 3], [1, 4]]], expected: 10 },
    { args: [[]], expected: 0 },
    { args: [[[100, 100]]], expected: 10_000 },
  ],
};

/** What one caller does after another, through real services. The other doors reach the same handlers. */
describe('skills', () => {
  it('are explored, registered, found, and used without the model', async () => {
    const explorer = { agent: 'explorer' };
    const code = `${INITIALS.code}\nprint(initials("ada lovelace"))`;
    const { result } = await tools.callTool({ tool: 'execute_code', arguments: { code }, ...explorer });
    expect(result?.['stdout']).toBe('AL\n');
    const before = await modelCalls();
    expect((await register(explorer, INITIALS)).status).toBe(SkillStatus.ACTIVE);
    expect(await search(explorer, 'initials of a full name')).toContain('initials');
    expect(await use(explorer, 'initials', { full_name: 'alan mathison turing' })).toBe('AMT');
    expect(await modelCalls()).toBe(before);
  });

  it("stay a person's own until an approver promotes them", async () => {
    const owner = { agent: 'helper', user: 'one' };
    const other = { agent: 'helper', user: 'two' };
    const sides = { width: 3, height: 4 };
    expect((await register(owner, area('room', 'width * height'))).status).toBe(SkillStatus.ACTIVE);
    expect(await use(owner, 'room', sides)).toBe(12);
    expect(await search(other, 'Area of a rectangle, for room.')).not.toContain('room');
    expect(await use(other, 'room', sides)).toBeUndefined();
    await skills.promoteSkill({ ...named(owner, 'room'), scope: SkillScope.TENANT });
    await expect(use(other, 'room', sides)).rejects.toThrow('FAILED_PRECONDITION');
    await approve({ agent: '' }, 'room');
    expect(await use(other, 'room', sides)).toBe(12);
    expect(await search(other, 'Area of a rectangle, for room.')).toContain('room');
  });

  it('refuse a version that breaks a dependent, and roll back one that does not', async () => {
    const builder = { agent: 'builder' };
    expect((await register(builder, area('wall', 'width * height'))).status).toBe(SkillStatus.ACTIVE);
    expect((await register(builder, FLOOR)).status).toBe(SkillStatus.ACTIVE);
    expect(await use(builder, 'floor_area', { rooms: [[2, 3], [4, 5]] })).toBe(26); // oxfmt-ignore

    const broken = await register(builder, area('wall', 'min(width * height, 50)'));
    expect(broken).toMatchObject({ status: SkillStatus.REJECTED, statusReason: expect.stringContaining('floor_area') });
    expect(await use(builder, 'wall', { width: 10, height: 10 })).toBe(100);

    expect((await register(builder, area('wall', 'height * width + 0'))).status).toBe(SkillStatus.ACTIVE);
    expect((await skills.rollbackSkill({ ...named(builder, 'wall'), reason: 'it did worse' })).version).toBe(1);
    expect(await versions(builder, 'wall')).toEqual(['3 DEPRECATED', '2 REJECTED', '1 ACTIVE']);
    expect(await use(builder, 'floor_area', { rooms: [[2, 3]] })).toBe(6);
  });

  it('are written where somebody missed them', async () => {
    const wisher = { agent: 'wisher' };
    const missed = await skills.useSkill({ ...named(wisher, 'count_vowels'), parameters: { text: 'education' } });
    expect(missed).toMatchObject({ success: false, skillRequestSubmitted: true });
    const isWritten = async () => (await versions(wisher, 'count_vowels').catch(() => [])).find((one) => /PENDING_REVIEW|ACTIVE/.test(one));
    if ((await until(isWritten, { what: 'the skill to be written and verified' })).includes('PENDING'))
      await approve(wisher, 'count_vowels');
    expect(await use(wisher, 'count_vowels', { text: 'education' })).toBe(5);
  });
});
