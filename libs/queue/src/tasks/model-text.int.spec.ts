import { until } from '@etude/test-support/until';
import { describe, expect, it } from 'vitest';
import { queueForFile } from '../../test/rig.js';
import { addText, listenToText, type ModelText, TextPublisher } from './events.js';

const startQueue = queueForFile();

describe('the text of a model', () => {
  it('is published in few messages, and whole where it is flushed', async () => {
    const { redis, keys } = startQueue();
    const channel = keys.text('acme', 't1');
    const heard: ModelText[] = [];
    using listening = listenToText(redis, channel, (text) => heard.push(text));
    await listening.ready;
    // A publisher drops texts until its connection is ready.
    await redis.ping();
    const publisher = new TextPublisher(redis, channel);
    for (let n = 0; n < 1_000; n += 1) publisher.add('a1.generate', 'word ');
    publisher.add('a1.critique', 'why');
    publisher.flush();
    await until(() => heard.some(({ step }) => step === 'a1.critique'));
    expect(heard.map(({ step, text }) => [step, text.length])).toEqual([
      ['a1.generate', 4_096],
      ['a1.generate', 4],
      ['a1.generate', 900],
      ['a1.critique', 3],
    ]);
    publisher.add('a2.generate', 'later');
    await until(() => heard.at(-1)?.text === 'later', { what: 'the message of the timer' });
  });

  it('is kept for a slow reader up to a limit, with a mark where text was left out', () => {
    const pending: ModelText[] = [];
    for (let n = 0; n < 70; n += 1) addText(pending, { step: 'a', text: String(n) });
    expect(pending.map(({ text }) => text)).toEqual(['[...]6', ...Array.from({ length: 63 }, (_, n) => String(n + 7))]);
  });
});
