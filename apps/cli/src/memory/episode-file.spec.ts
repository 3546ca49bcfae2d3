import { expect, it } from 'vitest';
import { CliError } from '../cli-error.js';
import { readEpisode } from './episode-file.js';

function refusal(text: string): CliError {
  try {
    readEpisode(text);
  } catch (error) {
    if (error instanceof CliError) return error;
  }
  throw new Error('nothing was refused');
}

it('takes an episode with its context alone, and keeps what outcomes say', () => {
  expect(readEpisode('{"context": ["fog"]}')).toEqual({ context: ['fog'], actions: [], outcomes: [], skills_used: [], reflection: '' });
  const outcomes = [{ type: 'passed', depths: [1, { m: 2.5 }] }];
  expect(readEpisode(JSON.stringify({ context: ['fog'], outcomes })).outcomes).toEqual(outcomes);
});

it.each([
  ['{"context": ["a"], "outcomes": {"type": "x"}}', 'outcomes must be a list of objects, such as [{"type": "passed"}]; it is an object'],
  ['{"context": ["a"], "outcomes": ["x"]}', 'outcomes[0] must be an object, such as {"type": "passed"}; it is text'],
  ['{"context": "a"}', 'context must be a list of texts, such as ["fog in the channel"]; it is text'],
  ['{"context": ["a", 1]}', 'context[1] must be text; it is a number'],
  ['{"context": ["a"], "importance": "high"}', 'importance must be a number from 0 to 1; it is text'],
  ['{"context": ["a"], "reflection": null}', 'reflection must be text; it is null'],
  ['{}', 'context is missing; it must be a list of texts, such as ["fog in the channel"]'],
  ['[]', 'it must be an object; it is a list'],
  [
    '{"context": ["a"], "outcome": []}',
    '"outcome" is no part of an episode; its parts are context, actions, outcomes, skills_used, reflection, importance',
  ],
])('says of %s what is wrong and where', (text, said) => {
  expect(refusal(text).message).toBe(`the episode is wrong: ${said}`);
});

it('says all that is wrong, and what an episode looks like', () => {
  const { hint } = refusal('{"context": "a", "actions": 1}');
  expect(hint).toEqual([
    'actions must be a list of texts, such as ["fog in the channel"]; it is a number',
    expect.stringContaining('it looks like {"context"'),
    expect.stringContaining('@FILE'),
  ]);
});

it('says that what is no JSON can not be read, and how a file is', () => {
  const { message, hint } = refusal('fog.json');
  expect(message).toMatch(/^the episode can't be read as JSON: /);
  expect(hint.join()).toContain('@FILE');
});
