import { expect, it } from 'vitest';
import { familyReader, roundsOf } from './families.command.js';
import { parseEntries } from './problems.js';

const line = (over: object) => JSON.stringify({ id: 'a/1', family: 'a', kind: 'house_rule', prompt: 'Add.', ...over });

it('gives a line without a round the next round of its family', () => {
  const problems = parseEntries(familyReader(), [line({}), line({ id: 'a/2' }), line({ id: 'b/1', family: 'b', round: 2 })].join('\n'));
  expect(problems.map(({ id, round }) => [id, round])).toEqual([
    ['a/1', 1],
    ['a/2', 2],
    ['b/1', 2],
  ]);
  expect(problems[0]).toMatchObject({ family: 'a', familyKind: 'house_rule', spec: { prompt: 'Add.' } });
});

it.each([
  ['an unknown kind', line({ kind: 'riddle' }), 'line 2: kind: '],
  ['no family', line({ family: undefined }), 'line 2: family: '],
  ['a round of 0', line({ round: 0 }), 'line 2: round: '],
  [
    'another kind than its family',
    line({ id: 'a/2', kind: 'procedure' }),
    'line 2: kind: is procedure, but a/1 of the same family a has house_rule; give both the same kind',
  ],
  ['a field that no task has', line({ id: 'a/2', promt: '' }), /line 2: .*promt/],
  ['a known id', line({}), 'line 2: repeats the id a/1 of line 1'],
])('names line and field of a line with %s', (_what, wrong, message) => {
  expect(() => parseEntries(familyReader(), `${line({})}\n${wrong}`)).toThrow(message);
});

it('refuses more rounds than a family has', () => {
  const problems = parseEntries(familyReader(), [line({}), line({ id: 'a/2' }), line({ id: 'b/1', family: 'b' })].join('\n'));
  expect(roundsOf(problems, 1)).toHaveLength(1);
  expect(() => roundsOf(problems, 2)).toThrow('the file has no line of the family b for round 2');
});
