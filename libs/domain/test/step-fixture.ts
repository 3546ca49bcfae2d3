import { Buffer } from 'node:buffer';
import { afterAll } from 'vitest';
import type { ChatRequest, ChatResponse } from '../src/ports/model.js';
import { type FakeAnswer, FakeChatModel } from './fake-chat-model.js';
import { FakeWorkSandboxes } from './fake-work-sandboxes.js';
import { type SpecGiven, World, type WorldGiven } from './rollout-fixture.js';

export const file = (path: string, text: string) => ({ path, contentBase64: Buffer.from(text).toString('base64') });

/** An answer with tool calls, as from a server that has function calling. */
export function calls(...called: ReadonlyArray<readonly [name: string, args: object]>): Partial<ChatResponse> {
  return {
    text: '',
    toolCalls: called.map(([name, args], at) => ({ id: `call-${at + 1}`, name, arguments: JSON.stringify(args) })),
  };
}

export const python = (code: string) => calls(['python', { code }]);
export const finalAnswer = (answer: string) => calls(['final_answer', { answer }]);

/** A model that answers by the number of the step in the prompt, so a repeated step gets the same answer. */
export const stepByStep =
  (answers: readonly FakeAnswer[]): FakeAnswer =>
  (request, signal) => {
    const answer = answers[stepOf(request) - 1];
    if (answer === undefined) throw new Error(`there is no answer for step ${stepOf(request)}`);
    return typeof answer === 'function' ? answer(request, signal) : answer;
  };

export const stepOf = ({ messages }: ChatRequest): number => Number(/Step (\d+) of/.exec(messages.at(-1)?.content ?? '')?.[1]);

export const textOf = (request: ChatRequest | undefined): string => (request?.messages ?? []).map(({ content }) => content).join('\n');

export const last = (model: FakeChatModel) => textOf(model.requests.at(-1));

/** Rollouts of an agent that acts in steps, in sandboxes of this spec file only. */
export function stepWorlds() {
  const workSandboxes = new FakeWorkSandboxes();
  afterAll(() => workSandboxes.close());
  let rollouts = 0;
  /** Sandboxes for one rollout. Their names differ from those of other rollouts. */
  const own = (): Pick<FakeWorkSandboxes, 'open'> => {
    const prefix = `${(rollouts += 1)}-`;
    return { open: (request, signal) => workSandboxes.open({ ...request, requestId: prefix + request.requestId }, signal) };
  };
  /** A rollout whose model gives these answers, one for each step, and then the final answer "done". */
  const worldOf = (answers: readonly FakeAnswer[], spec: SpecGiven = {}, { deps, ...given }: Partial<WorldGiven> = {}) => {
    const model = new FakeChatModel(Array.from({ length: 60 }, () => stepByStep([...answers, finalAnswer('done')])));
    const world = new World({
      ...given,
      model,
      spec: { strategy: 'codeact', evaluator: { kind: 'none' }, memory: { off: true }, limits: { attemptsMax: 1 }, ...spec },
      deps: { workSandboxes: own(), ...deps },
    });
    return { world, model };
  };
  /** The same as `worldOf`, but the rollout has already run to its end. */
  const ran = async (...given: Parameters<typeof worldOf>) => {
    const made = worldOf(...given);
    return { ...made, end: await made.world.run() };
  };
  /** An answer that first ends the latest rollout's first sandbox, as if its machine had failed. */
  const lose: FakeAnswer = () => {
    const sandboxes = workSandboxes as unknown as { opened: Map<string, { lose: (why: string) => void }> };
    sandboxes.opened.get(`${rollouts}-t00000000-r1.w0`)!.lose('its machine went away');
    return python('print(1)');
  };
  return { own, worldOf, ran, lose };
}
