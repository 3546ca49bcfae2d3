import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { gatewayForFile, refusal } from './gateway.harness.js';

const rig = gatewayForFile();
const memory = () => rig.client(Memory);
const episode = { agent: 'scout', context: ['fog'] };

function nested(depth: number): JsonObject {
  return depth === 1 ? { deepest: true } : { deeper: nested(depth - 1) };
}

describe('a request that is too large is refused as a whole', () => {
  it.each([
    ['outcomes', { outcomes: Array.from({ length: 1_000_001 }, () => ({})) }],
    ['outcomes', { outcomes: Array.from({ length: 10_001 }, () => ({})) }],
    ['skills_used', { skillsUsed: Array.from({ length: 300_000 }, () => 's') }],
    ['context', { context: Array.from({ length: 1_001 }, () => 'fog') }],
    ['actions', { actions: Array.from({ length: 10_001 }, () => '') }],
  ])('%s with too many entries', async (field, more) => {
    const refused = await refusal(memory().storeEpisode({ ...episode, ...more }));
    expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, fields: [field] });
    expect(refused.message).toContain('must not have more than');
  });

  it('an episode of many MiB, with the size that it may have', async () => {
    const long = await refusal(memory().storeEpisode({ ...episode, reflection: '', actions: ['x'.repeat(14_000_000)] }));
    expect(long).toMatchObject({ status: status.RESOURCE_EXHAUSTED, code: 'PAYLOAD_TOO_LARGE' });
    const longer = await refusal(memory().storeEpisode({ ...episode, actions: ['x'.repeat(900_000), 'y'.repeat(200_000)] }));
    expect(longer).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
    expect(longer.message).toContain('1048576');
  });

  it.each([
    [25, 'outcomes[1]: is nested deeper than 24 lists and objects'],
    [47, 'outcomes[1]: is nested deeper than 24 lists and objects'],
    [150, '(request): has lists and objects nested deeper than a message may have them'],
  ])('an outcome of %i objects in each other', async (depth, said) => {
    const refused = await refusal(memory().storeEpisode({ ...episode, outcomes: [nested(24), nested(depth)] }));
    expect(refused.status).toBe(status.INVALID_ARGUMENT);
    expect(refused.message).toContain(said);
    expect(refused.message).not.toContain('protobuf');
  });
});

it('searches for text that normalising makes eighteen times as long', async () => {
  expect((await memory().searchMemory({ query: 'ﷺ'.repeat(99_000) })).hits).toEqual([]);
});

describe('what is wrong is said in sentences', () => {
  it.each([
    [() => memory().storeFact({ agent: 'scout', text: '' }), 'text: must not be empty'],
    [() => memory().storeFact({ agent: '', text: 'x' }), 'agent: must not be empty'],
    [() => memory().storeFact({ agent: 'no good', text: 'x' }), 'agent: must start with a letter or digit'],
    [() => memory().storeProcedure({ agent: 'scout', name: 'Moor Boat', prompt: 'x' }), 'name: must start with a small letter'],
    [() => memory().storeEpisode({ agent: 'scout' }), 'context: must not be empty'],
    [() => memory().storeFact({ agent: 'scout', text: 'x', confidence: Number.NaN }), 'confidence: must be'],
  ])('%#', async (call, said) => {
    const { message } = await refusal(call());
    expect(message).toContain(said);
    expect(message).not.toMatch(/Too small|Invalid|>=/);
  });
});
