import { create, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { type Mode, SubmitTaskRequestSchema } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { gatewayForFile, refusal, SPEC, type SpecInit } from './gateway.harness.js';

const rig = gatewayForFile();
const UNKNOWN_MODE = 7 as unknown as Mode;
const submitBytes = (bytes: Uint8Array) => rig.callRaw('/etude.v1.Tasks/SubmitTask', bytes);

/** Encodes a field whose value is bytes. */
const wrap = (no: number, inner: Uint8Array): Uint8Array => new BinaryWriter().tag(no, WireType.LengthDelimited).bytes(inner).finish();

const submit = (spec: SpecInit | undefined, requestId = '') => refusal(rig.tasks().submitTask({ spec, requestId }));
type Kind = NonNullable<NonNullable<SpecInit['evaluator']>['kind']>;
/** A task with this evaluator. */
const judged = (kind: Kind['case'], value: object): SpecInit => ({ prompt: 'p', evaluator: { kind: { case: kind, value } as Kind } });
const infinite = { kind: { case: 'numberValue', value: Infinity } };
const file = (path: string) => ({ path, content: new Uint8Array([1]) });

describe('a wrong field is named as the caller wrote it', () => {
  const minute = { seconds: 60n };
  const wrong: Array<[string, SpecInit | undefined]> = [
    ['spec', undefined],
    ['spec.prompt', { ...SPEC, prompt: '' }],
    ['spec.evaluator', { prompt: 'p', evaluator: {} }],
    ['spec.evaluator.io_cases.cases', judged('ioCases', { cases: [] })],
    [
      'spec.evaluator.named.spec.cases[0].outputs',
      judged('named', { name: 'accepted_outputs', spec: { cases: [{ stdin: '', outputs: [] }] } }),
    ],
    ['spec.evaluator.io_cases.comparison', judged('ioCases', { cases: [{}], comparison: 9 })],
    ['spec.evaluator.function_cases.cases[0].expected', judged('functionCases', { entryPoint: 'f', cases: [{}] })],
    [
      'spec.evaluator.function_cases.cases[0].args',
      judged('functionCases', {
        entryPoint: 'f',
        cases: [{ args: { values: [infinite] }, expected: { kind: { case: 'boolValue', value: true } } }],
      }),
    ],
    ['spec.evaluator.command.command', judged('command', { command: 'true\u0000' })],
    ['spec.evaluator.command.answer_path', judged('command', { command: 'true', answerPath: '../x' })],
    ['spec.limits.attempts', { ...SPEC, limits: { attempts: -1 } }],
    ['spec.limits.wall_time', { ...SPEC, limits: { wallTime: { seconds: 1_000_000n } } }],
    ['spec.limits.sandbox.memory_mib', { ...SPEC, limits: { sandbox: { memoryMib: 1_000_000 } } }],
    ['spec.strategy', { ...SPEC, strategy: 'tree' }],
    ['spec.mode', { ...SPEC, mode: UNKNOWN_MODE }],
    ['spec.memory.layers[0]', { ...SPEC, memory: { layers: ['working'] } }],
    ['spec.labels."x"', { ...SPEC, labels: { x: 'y'.repeat(256) } }],
    ['spec.labels', { ...SPEC, labels: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`k${n}`, ''])) }],
    ['spec.files[0].path', { ...SPEC, files: [file('/etc/passwd')] }],
    ['spec.files[0].path', { ...SPEC, files: [file('a/../../b')] }],
    ['spec.files[0].path', { ...SPEC, files: [file(`a/${'é'.repeat(128)}`)] }],
    [
      'spec.limits.sandbox.disk_mib',
      { ...SPEC, files: [{ path: 'a', content: new Uint8Array(1_048_576) }], limits: { sandbox: { diskMib: 1 } } },
    ],
    ['spec.files[1].path', { ...SPEC, files: [file('a'), file('a')] }],
    ['spec.files[1].path', { ...SPEC, files: [file('a'), file('a/b')] }],
    ['spec.files', { ...SPEC, files: [{ path: 'big', content: new Uint8Array(8 * 1024 * 1024 + 1) }] }],
    ['spec.files', { ...SPEC, files: Array.from({ length: 101 }, (_, n) => file(`f${n}`)) }],
  ];

  it.each(wrong)('%s', async (field, spec) => {
    const refused = await submit(spec);
    expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, code: 'INVALID_ARGUMENT', fields: [field] });
    expect(refused.message).toContain(field);
  });

  it('all of them at once', async () => {
    const refused = await submit({ ...SPEC, prompt: '', limits: { attempts: 101, wallTime: minute }, strategy: 'tree' });
    expect(refused.fields.toSorted()).toEqual(['spec.limits.attempts', 'spec.prompt', 'spec.strategy']);
  });

  it('with the allowed bound', async () => {
    const limits = { attempts: 1_000_000, wallTime: { nanos: 1_000_000 } };
    expect((await submit({ ...SPEC, limits })).descriptions).toEqual(['must be at most 100', 'must be at least 100 ms']);
  });
});

it.each(['a b', 'x'.repeat(129)])('refuses the request id %j', async (requestId) => {
  expect(await submit(SPEC, requestId)).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['request_id'] });
});

it.each(['', 'tasks/../t1', 'skills/t0192f0c8a1b2'])('refuses the task name %j', async (name) => {
  expect(await refusal(rig.tasks().getTask({ name }))).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['name'] });
});

it('replaces zero limits by the defaults', async () => {
  const task = await rig.tasks().submitTask({ spec: { ...SPEC, limits: { attempts: 0, costUsd: 0, sandbox: { memoryMib: 0 } } } });
  expect(task.spec?.limits).toMatchObject({ attempts: 4, costUsd: 0, sandbox: { memoryMib: 512 } });
});

it('refuses text that is not UTF-8', async () => {
  const refused = await refusal(submitBytes(wrap(1, wrap(3, new Uint8Array([0xc3, 0x28])))));
  expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, code: 'INVALID_ARGUMENT' });
  expect(refused.message).toContain('UTF-8');
});

it.each([[[0x0a, 0xff]], [[0xff, 0xff, 0xff]], [[0x0b]], [[0x08, 0x01]]])('refuses the bytes %j', async (bytes) => {
  expect((await refusal(submitBytes(new Uint8Array(bytes)))).status).toBe(status.INVALID_ARGUMENT);
});

it('refuses unknown fields at every level', async () => {
  const inside = create(SubmitTaskRequestSchema, { spec: { ...SPEC, limits: { attempts: 1 } } });
  if (inside.spec?.limits) inside.spec.limits.$unknown = [{ no: 99, wireType: WireType.Varint, data: new Uint8Array([1]) }];
  const refused = await refusal(submitBytes(toBinary(SubmitTaskRequestSchema, inside)));
  expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, fields: ['spec.limits'] });
  expect(refused.message).toContain('99');
});

it('refuses a message of more than 16 MiB', async () => {
  const refused = await refusal(submitBytes(new Uint8Array(16 * 1024 * 1024 + 1)));
  expect(refused.status).toBe(status.RESOURCE_EXHAUSTED);
});

it('refuses a message with five thousand levels', async () => {
  let nested: Uint8Array = new Uint8Array();
  for (let depth = 0; depth < 5_000; depth += 1) {
    nested = wrap(6, wrap(1, nested));
  }
  // request.spec.evaluator.function_cases.cases[0].expected
  expect((await refusal(submitBytes(wrap(1, wrap(6, wrap(2, wrap(2, wrap(3, nested)))))))).status).toBe(status.INVALID_ARGUMENT);
});
