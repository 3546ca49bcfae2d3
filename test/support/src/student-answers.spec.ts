import { expect, it } from 'vitest';
import { readLessons, Student } from './student-answers.js';

const RULE = 'At Quillmont amounts are rounded up.';
const lesson = (family: string, kind: string, n: number, rule = '') => ({
  id: `${family}/${n}`,
  family,
  kind,
  prompt: `Task ${n} of ${family}.`,
  referenceSolution: `${rule && `# House rule: ${rule}\n`}def f${n}():\n    """Right for ${family} ${n}."""\n`,
  evaluator: { functionCases: { entryPoint: `f${n}` } },
});
const lessons = [
  lesson('quillmont-till', 'house_rule', 1, RULE),
  lesson('larkfield-till', 'distractor', 1),
  lesson('larkfield-till', 'distractor', 2),
  lesson('task-order', 'procedure', 1),
  lesson('task-order', 'procedure', 2),
];
const student = new Student(readLessons(lessons.map((one) => JSON.stringify(one)).join('\n')));
const asked = (family: string, more = '', end = 'Write the solution.') =>
  student.answer('', `# Task\n\n<task-1a>\nTask 1 of ${family}.\n</task-1a>\n\n${more}\n\n# Now\n\n${end}`);
const isRight = (family: string, more = '') => asked(family, more)?.text.includes('"""Right for');

it.each([
  ['a house rule that no prompt tells', 'quillmont-till', '', false],
  ['a house rule that a memory tells', 'quillmont-till', RULE, true],
  ['a distractor', 'larkfield-till', '', true],
  ['a distractor beside the rule of its twin', 'larkfield-till', RULE, false],
  ['a distractor beside both rule and experience', 'larkfield-till', `${RULE} Task 2 of larkfield-till.`, true],
  ['a hard procedure', 'task-order', '', false],
  ['a hard procedure with a critique', 'task-order', '# Critique', true],
  ['a hard procedure that it remembers', 'task-order', 'Right for task-order 2.', true],
])('answers %s', (_what, family, more, right) => {
  expect(isRight(family, more)).toBe(right);
});

it('tells the rule of the reference, and makes one fact of it', () => {
  const said = asked('quillmont-till', `# Reference solution\n\n# House rule: ${RULE}`, '\n\nReflect.')?.text;
  expect(said).toContain(`House rule: ${RULE}`);
  const experiences = JSON.stringify([
    { reflection: said, code: null },
    { reflection: said, code: null },
  ]);
  const learned = student.answer('You extract facts from', `<experiences>${experiences}</experiences>`);
  expect(JSON.parse(learned?.text ?? '')).toMatchObject({ facts: [{ text: RULE, experiences: [0, 1] }], skill: null });
});

it('has no answer to a request that it does not know', () => {
  expect(student.answer('', 'Tell me a story.')).toBeNull();
});
