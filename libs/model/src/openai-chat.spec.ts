import { chatModelConformance } from '@etude/domain/testing/chat-model-conformance';
import type { ConformanceAnswer } from '@etude/domain/testing/chat-model-conformance';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '@etude/test-support/until';
import { ask, chatModel, never } from '../test/raw-server.js';
import type { ScriptInput } from './script.js';
import { startScriptedModel } from './scripted-server.js';

type Rule = NonNullable<ScriptInput['rules']>[number];

function ruleFor({ prompt, text, cut, refused, hangs }: ConformanceAnswer): Rule {
  if (refused) return { match: prompt, status: 403, error: 'not for you' };
  return {
    match: prompt,
    ...(text === undefined ? {} : { reply: text }),
    ...(cut ? { finish_reason: 'length' } : {}),
    ...(hangs ? { reply: 'late', delay_ms: 600_000 } : {}),
  };
}

async function start(script: ScriptInput, options = {}) {
  const server = await startScriptedModel({ script });
  onTestFinished(() => server.close());
  return { server, model: chatModel(server.url, { model: undefined, ...options }) };
}

describe('OpenAiChatModel against the scripted model', () => {
  chatModelConformance(async (answers) => {
    const server = await startScriptedModel({ script: { rules: answers.map(ruleFor) } });
    return { model: chatModel(server.url), close: () => server.close() };
  });

  it('marks answers of a script as scripted', async () => {
    const { model } = await start({ name: 'demo', rules: [{ match: 'hello', reply: 'hi' }] });
    expect(await model.chat(ask('hello'), never())).toMatchObject({ scripted: true, model: 'scripted/demo' });
  });

  it('gives the text in parts while it is written', async () => {
    const reply = 'a long answer of the model, in more than one part';
    const { model } = await start({ default: { reply } });
    const parts: string[] = [];
    await model.chat({ ...ask('x'), onText: (text) => parts.push(text) }, never());
    expect(parts.length).toBeGreaterThan(1);
    expect(parts.join('')).toBe(reply);
  });

  it('closes the connection at an abort', async () => {
    const { model, server } = await start({ default: { reply: 'late', delay_ms: 600_000 } }, { model: 'any' });
    const controller = new AbortController();
    const outcome = model.chat(ask('silent'), controller.signal).catch((error: unknown) => error);
    await until(() => server.calls().some((call) => call.answered === 'pending'));
    controller.abort(new Error('cancelled by the user'));
    expect((await outcome) as Error).toMatchObject({ name: 'AbortError', cause: { message: 'cancelled by the user' } });
    await until(() => server.calls().some((call) => call.answered === 'aborted'));
  });

  it('quotes the message that no rule fits', async () => {
    const { model } = await start({ rules: [{ match: 'other', reply: 'x' }] });
    await expect(model.chat(ask('what is this'), never())).rejects.toMatchObject({
      code: 'MODEL_REFUSED',
      message: expect.stringMatching(/"what is this"; add a rule to the script, or a default\.$/),
    });
  });
});
