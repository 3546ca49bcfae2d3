import { type DescService, fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import { Agents } from '@etude/contracts/gen/etude/v1/agents_pb';
import { Consolidation } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { Memory } from '@etude/contracts/gen/etude/v1/memory_pb';
import { Queues } from '@etude/contracts/gen/etude/v1/queues_pb';
import { Sandboxes } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { Worlds } from '@etude/contracts/gen/etude/v1/worlds_pb';
import { methodDefinition } from '@etude/contracts/grpc';
import { EtudeError } from '@etude/contracts/errors';
import { type sendUnaryData, Server, ServerCredentials, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { etude } from '../test/etude.js';
import { serviceError } from '../test/service-error.js';
import { skillReference } from './command.js';

/** A gateway that answers each unary call with the next given answer, and keeps the requests. */
const asked: Array<readonly [string, JsonObject]> = [];
let answers: Array<JsonObject | Error> = [];
const server = new Server();
let address = '';

function addService(service: DescService): void {
  const unary = service.methods.filter(({ methodKind }) => methodKind === 'unary');
  const handler = (method: (typeof unary)[number]) => (call: ServerUnaryCall<object, object>, done: sendUnaryData<object>) => {
    asked.push([method.localName, toJson(method.input, call.request as never) as JsonObject]);
    const answer = answers.shift() ?? {};
    if (answer instanceof Error) done(answer);
    else done(null, fromJson(method.output, answer));
  };
  server.addService(
    Object.fromEntries(unary.map((method) => [method.localName, methodDefinition(method)])),
    Object.fromEntries(unary.map((method) => [method.localName, handler(method)])) as never,
  );
}

beforeAll(async () => {
  for (const service of [Agents, Consolidation, Memory, Queues, Sandboxes, Skills, Tasks, Worlds]) addService(service);
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))),
  );
  address = `127.0.0.1:${port}`;
});
afterAll(() => server.forceShutdown());
beforeEach(() => {
  asked.length = 0;
  answers = [];
});

/** Runs one command line. */
async function run(words: readonly string[], ...given: Array<JsonObject | Error>) {
  answers = given;
  return etude(words, { ETUDE_ADDRESS: address });
}

const page = (name: string) => ({ tasks: [{ name }], nextPageToken: 'more' });

describe('a command that is one call', () => {
  it.each<[string, string, JsonObject]>([
    ['tasks list --state running --label a=b --limit 7', 'listTasks', { pageSize: 7, state: 'TASK_STATE_RUNNING', labels: { a: 'b' } }],
    ['tasks get tasks/t1', 'getTask', { name: 'tasks/t1' }],
    ['tasks answer t1 1984 --key k', 'answerTask', { name: 'tasks/t1', text: '1984', key: 'k' }],
    ['sandbox renew s1 --ttl 90s', 'renewSandbox', { name: 'sandboxes/s1', ttl: '90s' }],
    ['skills get double@3 --user ann', 'getSkill', { name: 'skills/double', version: 3, user: 'ann' }],
    ['skills search words --similarity-min 0 --limit 2', 'searchSkills', { query: 'words', minSimilarity: 0, maxResults: 2 }],
    ['skills rollback double@1', 'rollbackSkill', { name: 'skills/double', toVersion: 1 }],
    ['skills approve double --digest d --merge twice', 'approveSkill', { name: 'skills/double', digest: 'd', merge: 'skills/twice' }],
    [
      'skills request twice words --example {"n":1}',
      'requestSkill',
      { name: 'twice', description: 'words', agent: 'default', example: { n: 1 } },
    ],
    ['skills withdraw w1', 'withdrawWantedSkill', { name: 'wantedSkills/w1' }],
    ['skills diff double', 'diffSkill', { name: 'skills/double' }],
    ['skills use double n=2', 'useSkill', { name: 'skills/double', parameters: { n: 2 }, noRequest: true }],
    ['skills use double --request-missing --agent a', 'useSkill', { name: 'skills/double', parameters: {}, agent: 'a' }],
    ['agents list --limit 2', 'listAgents', { pageSize: 2 }],
    [
      'agents set solver max_skills=7',
      'updateAgent',
      {
        agent: { name: 'agents/solver', proceduralMemorySettings: { maxSkills: 7 } },
        updateMask: 'proceduralMemorySettings.maxSkills',
      },
    ],
    ['queues redrive q a b', 'redriveDeadLetters', { queue: 'q', ids: ['a', 'b'] }],
    ['memory explain fog --layer a --layer b', 'searchMemory', { query: 'fog', layers: ['a', 'b'], limit: 5, explain: true }],
    ['memory recall fog --facts 0 --tokens 50', 'recall', { context: 'fog', facts: 0, tokensMax: 50 }],
    ['memory list --all --limit 3', 'listMemory', { kind: 'fact', all: true, pageSize: 3 }],
    ['memory delete e1 --layer episodic --yes --detach', 'deleteMemory', { id: 'e1', layer: 'episodic' }],
    ['memory update f1 --text tea', 'updateFact', { id: 'f1', text: 'tea', updateMask: 'text' }],
    ['memory undo f1 f2', 'undoFactDecision', { id: 'f1', other: 'f2' }],
    ['memory history f1', 'listFactHistory', { id: 'f1' }],
    ['memory recent --skill s --limit 2', 'listRecentEpisodes', { skill: 's', limit: 2 }],
    ['memory store fact tea --user ann --subject s', 'storeFact', { agent: 'default', text: 'tea', user: 'ann', subject: 's' }],
    ['memory store episode {"context":["fog"]}', 'storeEpisode', { agent: 'default', context: ['fog'] }],
    ['memory store procedure moor Throw.', 'storeProcedure', { agent: 'default', name: 'moor', prompt: 'Throw.' }],
    ['memory get moor --layer procedural', 'getMemory', { id: 'moor', layer: 'procedural' }],
    ['memory erase --user ann --yes --detach', 'eraseMemory', { user: 'ann' }],
    ['world new moor --size 16', 'createWorld', { name: 'worlds/moor', width: 16, height: 16 }],
    [
      'world run moor move_to {"x":3,"y":-4}',
      'moveInWorld',
      { name: 'worlds/moor', tool: 'move_to', arguments: { x: 3, y: -4 }, agent: 'default' },
    ],
  ])('sends the request of: %s', async (words, method, request) => {
    await run(words.split(' '));
    const sent = asked.map(([called, { requestId: _random, ...fields }]) => [called, fields]);
    expect(sent).toEqual([[method, request]]);
  });

  it('reads every page up to the limit, and notes that more results exist', async () => {
    const { stdout, stderr } = await run(['tasks', 'list', '--limit', '2', '--json'], page('tasks/a'), page('tasks/b'));
    expect(JSON.parse(stdout)).toMatchObject({ tasks: [{ name: 'tasks/a' }, { name: 'tasks/b' }] });
    expect(stderr).toBe('more results exist; raise --limit (now 2) to print them\n');
  });

  it('prints an empty list as JSON, and a note for people', async () => {
    expect(await run(['tasks', 'list', '--json'])).toEqual({ stdout: '{"tasks":[]}\n', stderr: 'no tasks\n', exit: 0 });
    expect(await run(['sandbox', 'list'])).toMatchObject({ stdout: '', stderr: expect.stringContaining('sandbox create') });
  });

  it('is retried with the same request id while the gateway is busy', async () => {
    const busy = serviceError(status.RESOURCE_EXHAUSTED, 'busy', new EtudeError('TOO_MANY_CALLS', 'busy'));
    await run(['skills', 'archive', 's'], busy, { name: 'skills/s' });
    expect(asked).toHaveLength(2);
    expect(asked[1]).toEqual(asked[0]);
  });

  it.each([
    [status.INVALID_ARGUMENT, 2],
    [status.NOT_FOUND, 3],
    [status.UNAUTHENTICATED, 5],
    [status.ALREADY_EXISTS, 6],
    [status.ABORTED, 6],
    [status.DEADLINE_EXCEEDED, 7],
    [status.INTERNAL, 70],
  ])('ends where the gateway answers with %i by the exit code %i', async (code, exit) => {
    const { stdout, stderr, ...ended } = await run(['tasks', 'get', 't1'], serviceError(code, 'it is so'));
    expect({ stdout, ...ended }).toEqual({ stdout: '', exit });
    expect(stderr).toContain('it is so');
  });

  it('ends by the exit code 4 where no gateway answers', async () => {
    expect(await etude(['tasks', 'list', '--address', '127.0.0.1:1'])).toMatchObject({
      exit: 4,
      stderr: expect.stringContaining('UNAVAILABLE'),
    });
  });

  it.each([
    [['queues', 'redrive', 'q'], 'name the jobs', 'queues dead q'],
    [['memory', 'update', 'f1'], 'nothing to change', ''],
    [['tasks', 'submit'], 'the task has no prompt', '--prompt'],
    [['memory', 'erase', '--user', 'a', '--tenant', 'b', '--yes'], 'name exactly one', ''],
    [['memory', 'erase', '--user', 'a'], 'erases all data of user a', 'add --yes'],
    [['memory', 'delete', 'f1'], 'permanently erases f1', 'add --yes'],
    [['memory', 'documents', 'delete', 'd1'], 'permanently erases d1', 'add --yes'],
    [['memory', 'conversations', 'delete', 'c1'], 'permanently erases c1', 'add --yes'],
    [['world', 'delete', 'w1'], 'permanently erases w1', 'add --yes'],
    [['skills', 'use', 's@3'], 'without a version', ''],
    [['sandbox', 'create', '--memory', '1'], 'whole number', ''],
    [['sandbox', 'exec', 's0192f0c8a1b2'], 'no code', ''],
  ])('refuses %j before any call', async (words, message, hint) => {
    const { exit, stderr } = await run(words);
    expect(exit).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).toContain(hint);
    expect(asked).toEqual([]);
  });
});

const hit = (layer: string, kind: string, id: string) => ({ layer, kind, id, score: 0.5 });
const headings = (stdout: string) => stdout.split('\n').flatMap((line) => /^[a-z]+:$|(?<=^ {2}id +)\w+$/.exec(line) ?? []);

describe('a command prints', () => {
  it('each skill that an undone pruning restored or left archived', async () => {
    const back = { name: 'skills/idle', version: 2, status: 'SKILL_STATUS_ACTIVE', statusReason: 'undid the pruning p1' };
    const left = { name: 'skills/old', version: 1, agent: 'solver', reason: 'version 2 is in use' };
    expect(await run(['skills', 'unprune', 'p1', '--request-id', 'r1'], { skills: [back], left: [left] })).toEqual({
      exit: 0,
      stdout: 'idle@2 is active: undid the pruning p1\n',
      stderr: 'old@1 stays archived: version 2 is in use\n',
    });
    expect(asked).toEqual([['undoPrune', { pruneId: 'p1', requestId: 'r1' }]]);
    expect(await run(['skills', 'unprune', 'p1'], {})).toMatchObject({ exit: 0, stdout: '', stderr: 'nothing was restored\n' });
  });

  it('what an undone consolidation took back, and what stays', async () => {
    const agents = [{ agent: 'solver', undone: ['facts/f1'], kept: ['skills/sum@1: ann decided on it'] }];
    const { stdout } = await run(['consolidate', 'undo', 'c1', '--agent', 'solver', '--request-id', 'r1'], { agents });
    expect(stdout).toBe('solver, 1 undone:\n  facts/f1\n  kept skills/sum@1: ann decided on it\n');
    expect(asked).toEqual([['undoConsolidation', { name: 'consolidationRuns/c1', agent: 'solver', requestId: 'r1' }]]);
  });

  it('search results below their layer or kind, the best first', async () => {
    const facts = [hit('semantic', 'fact', 's1'), hit('semantic', 'chunk', 's2')];
    const hits = [...facts.slice(0, 1), hit('episodic', 'episode', 'e1'), ...facts.slice(1)];
    const found = await run(['memory', 'search', 'fog'], { hits, missingLayers: ['procedural'] });
    expect(headings(found.stdout)).toEqual(['semantic:', 's1', 's2', 'episodic:', 'e1']);
    expect(found.stderr).toContain('could not be searched: procedural');
    const recalled = await run(['memory', 'recall', 'fog'], { facts, procedures: [hit('procedural', 'skill', 'p1')] });
    expect(headings(recalled.stdout)).toEqual(['fact:', 's1', 'chunk:', 's2', 'procedures:', 'p1']);
  });

  it('a line for each listed record, with what it says', async () => {
    const records: JsonObject[] = [
      { id: 'f1', agent: 'a', createTime: '2026-01-02T03:04:05Z', fields: { fact: 'Tea is hot.\nVery.' } },
      { id: 'moor@1', agent: 'a', user: 'ann', createTime: '2026-01-02T03:04:05Z', fields: { name: 'moor', prompt: 'Throw.' } },
    ];
    const { stdout } = await run(['memory', 'list'], { records });
    expect(stdout.split('\n').map((line) => line.trim().split(/ {2,}/))).toEqual([
      ['f1', '2026-01-02T03:04:05Z', 'a', 'Tea is hot.'],
      ['moor@1', '2026-01-02T03:04:05Z', 'a/ann', 'Throw.'],
      [''],
    ]);
  });

  it('the receipt of a deletion, and its failure by the exit code', async () => {
    const receipt = { id: 'e1', supported: ['facts/f2'], removed: { 'memory.semantic.fact': '1' } };
    const words = ['memory', 'delete', 'f1', '--yes', '--json'];
    const done = await run(words, { ...receipt, state: 'running' }, { ...receipt, state: 'succeeded' });
    expect(asked.map(([method]) => method)).toEqual(['deleteMemory', 'getErasure']);
    expect([done.exit, JSON.parse(done.stdout)]).toMatchObject([0, { ...receipt, state: 'succeeded' }]);
    expect((await run(words, { ...receipt, state: 'failed' })).exit).toBe(1);
  });

  it('the result or the failure of a skill', async () => {
    const answer = { success: true, name: 'skills/double', version: 2, output: 'said\n', result: { n: 4 } };
    expect(await run(['skills', 'use', 'double', 'n=2'], answer)).toEqual({ exit: 0, stdout: 'said\n{"n":4}\n', stderr: '' });
    const other = await run(['skills', 'use', 'twice'], { ...answer, success: false, error: 'it broke' });
    expect(other).toMatchObject({ exit: 1, stderr: expect.stringMatching(/answered by double@2.*\n.*it broke/) });
    const missing = { error: 'Skill not found', skillRequestSubmitted: true, wantedSkill: 'wantedSkills/w1' };
    expect((await run(['skills', 'use', 'none'], { error: missing.error })).stderr).toContain('--request-missing');
    expect(await run(['skills', 'use', 'none', '--agent', 'a'], missing)).toMatchObject({
      exit: 3,
      stderr: expect.stringContaining('skills wish wantedSkills/w1'),
    });
  });

  it('the map of a world, and every outcome of a move in it', async () => {
    const rows = ['.T', '~@'];
    const agents = [{ name: 'coder', x: 1, y: 1, stamina: 0.5, inventory: { ore: 2 } }];
    const { stdout } = await run(['world', 'show', 'moor'], { name: 'worlds/moor', seed: 's', width: 2, height: 2, tick: 4, rows, agents });
    expect(stdout).toMatch(/^worlds\/moor: seed s, 2x2, tick 4\n\n\.T\n~@\n\n.*@ agent\n\nNAME[^]*coder +1 +1 +0\.5 +ore=2\n$/);
    const words = ['world', 'run', 'moor', 'gather_resource'];
    const ore = { success: true, result: { resource: 'ore' } };
    expect(await run(words, ore)).toEqual({ exit: 0, stdout: '{"resource":"ore"}\n', stderr: '' });
    expect(await run(words, { success: false, error: 'Too far.' })).toEqual({ exit: 1, stdout: '', stderr: 'Too far.\n' });
    expect((await run([...words, '7'])).exit).toBe(2);
  });

  it('a note if a task had ended before it was cancelled', async () => {
    const { stderr } = await run(['tasks', 'cancel', 't'], {
      name: 'tasks/t',
      state: 'TASK_STATE_FAILED',
      endTime: '1970-01-01T00:00:00Z',
    });
    expect(stderr).toBe('tasks/t had already ended; nothing was cancelled\n');
  });
});

it.each(['', 'a/b', 'double@', 'double@0', 'double@x', 'skills/'])('the name of a skill is not %j', (text) => {
  expect(() => skillReference(text)).toThrow('is not the name of a skill');
});
