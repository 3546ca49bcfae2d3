import { afterAll, expect, it } from 'vitest';
import { type FakeAnswer, FakeChatModel } from '../../test/fake-chat-model.js';
import { FakeWorkSandboxes } from '../../test/fake-work-sandboxes.js';
import { World } from '../../test/rollout-fixture.js';
import { calls, finalAnswer, python, stepByStep, textOf } from '../../test/step-fixture.js';
import type { Journal } from '../ports/journal.js';
import { runRollout } from './run-rollout.js';

const workSandboxes = new FakeWorkSandboxes();
afterAll(() => workSandboxes.close());

const file = (path: string, text: string) => ({ path, contentBase64: Buffer.from(text).toString('base64') });
const last = (model: FakeChatModel) => textOf(model.requests.at(-1));
let rollouts = 0;

/** Sandboxes that share no names with those of other tests. */
function own(): Pick<FakeWorkSandboxes, 'open'> {
  const prefix = `${(rollouts += 1)}-`;
  return { open: (request, signal) => workSandboxes.open({ ...request, requestId: prefix + request.requestId }, signal) };
}

function worldOf(answers: readonly FakeAnswer[], files: ReadonlyArray<ReturnType<typeof file>> = []) {
  const model = new FakeChatModel(Array.from({ length: 60 }, () => stepByStep(answers)));
  const spec = {
    strategy: 'codeact',
    evaluator: { kind: 'none' },
    memory: { off: true },
    limits: { attemptsMax: 1 },
    files: [...files],
  } as const;
  return { world: new World({ model, spec: { ...spec, files: [...files] }, deps: { workSandboxes: own() } }), model };
}

it('says of an edit without its place that nothing was changed', async () => {
  const edit = calls(['fs_write', { path: 'a.txt', old: 'no such text', content: '1' }]);
  const { world, model } = worldOf([edit, calls(['fs_read', { path: 'a.txt' }]), finalAnswer('done')], [file('a.txt', 'x = 1\n')]);
  await world.run();
  expect(last(model)).toContain('occurs 0 times in "a.txt", not once. The new text is there already.');
});

it('edits no file that is large or no text, and keeps a byte order mark', async () => {
  const edits = ['big', 'latin', 'bom'].map((path) => ['fs_write', { path, old: 'START', content: 'BEGIN' }] as const);
  const { world, model } = worldOf([
    python(
      'open("big","w").write("START" + "x" * 1_100_000)\nopen("latin","wb").write(b"caf\\xe9 START")\nopen("bom","wb").write(b"\\xef\\xbb\\xbfSTART")',
    ),
    calls(...edits),
    python('import os\n(os.stat("big").st_size, open("latin","rb").read(), open("bom","rb").read())'),
    calls(['final_answer', { file: 'big' }]),
    finalAnswer('done'),
  ]);
  await world.run();
  const told = last(model);
  expect(told).toContain("(1100005, b'caf\\xe9 START', b'\\xef\\xbb\\xbfBEGIN')");
  expect(told).toContain('there is no file "big" of at most 1 MiB');
});

it('keeps what it changed when the worker dies after a final answer had opened the sandbox', async () => {
  const end = calls(['final_answer', { file: 's.py' }]);
  const [one, two] = [stepByStep([end]), stepByStep([calls(['fs_write', { path: 's.py', content: 'print("right")' }]), end])];
  const world = new World({
    model: new FakeChatModel([one, two, two, two]),
    spec: {
      strategy: 'codeact',
      files: [file('s.py', 'print("no")')],
      limits: { attemptsMax: 2 },
      memory: { off: true },
      evaluator: { kind: 'io_cases', cases: [{ stdin: '1', expectedStdout: '2' }] },
    },
    deps: { workSandboxes: own() },
  });
  const journal = world.journals.open() as Journal;
  const dying: Journal['append'] = async (entry, events) => {
    const answer = await journal.append(entry, events);
    if (entry.key === 'a2.s1.t1') throw new Error('killed');
    return answer;
  };
  const deps = { ...world.deps, journal: { ...journal, append: dying } };
  await expect(runRollout(world.input, deps, new AbortController().signal)).rejects.toThrow('killed');
  expect(await world.run()).toMatchObject({ state: 'succeeded', result: { code: 'print("right")' } });
});
