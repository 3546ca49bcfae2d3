import { expect, it } from 'vitest';
import { pngOf, reportPage, reportSvg } from './report.command.js';
import { figuresOf, figuresText, RunLine } from './figures.js';

const spent = { modelCalls: 2, inputTokens: 90, outputTokens: 10, costUsd: 0.5, scripted: true };
const task = (over: object) =>
  RunLine.parse({
    ...spent,
    kind: 'problem',
    id: 'a',
    family: 'a',
    familyKind: 'procedure',
    round: 1,
    arm: 'with',
    solved: true,
    attempts: 1,
    skill: '',
    isMisled: false,
    error: null,
    ...over,
  });
const lines = [
  RunLine.parse({ kind: 'run', run: '<b>&"x"', file: 'f', rounds: 1, agent: 'a' }),
  task({}),
  task({ id: 'b', attempts: 2 }),
  task({ id: 'c', attempts: 0, skill: 'skills/s/versions/1' }),
  task({ id: 'd', isMisled: true }),
  task({ arm: 'without', familyKind: 'distractor' }),
  RunLine.parse({ ...spent, kind: 'consolidation', round: 1, factsAdded: 0, skillsActivated: 0 }),
];

it('counts first attempts that are right, and what learning cost', () => {
  const { rows } = figuresOf(lines);
  const of = (arm: string, kind: string) => rows.find((row) => row.arm === arm && row.kind === kind);
  expect(of('with', 'procedure')).toMatchObject({
    tasks: 4,
    firstRight: 3,
    misled: 1,
    solved: 4,
    bySkill: 1,
    modelCalls: 8,
    tokens: 400,
    costUsd: 2,
  });
  expect(of('with', 'all')).toMatchObject({ tasks: 4, modelCalls: 10, tokens: 500, costUsd: 2.5 });
  expect(of('without', 'all')).toMatchObject({ tasks: 1, modelCalls: 2 });
  expect(of('with', 'distractor')).toBeUndefined();
});

it('adds up several runs', () => {
  const { runs, rows } = figuresOf([...lines, ...lines]);
  expect(runs).toHaveLength(2);
  expect(rows.find(({ kind }) => kind === 'all')).toMatchObject({ tasks: 8, modelCalls: 20 });
});

it('escapes every text, and needs nothing from outside', () => {
  const figures = figuresOf(lines);
  for (const drawn of [reportPage(figures), reportSvg(figures)]) {
    expect(drawn).not.toContain('<b>');
    expect(drawn).toContain('&#60;b&#62;&#38;&#34;x&#34;');
    expect(drawn).toContain('[scripted]');
    expect(drawn).not.toMatch(/<script|<link|<img|src=|href=|url\(/);
  }
  expect(reportPage(figures)).toContain('US dollars per task');
  expect(figuresText(figures)).toContain('[scripted]');
});

it('draws the picture in pixels, words included', async () => {
  const svg = reportSvg(figuresOf(lines));
  const png = Buffer.from(await pngOf(svg));
  expect(png.toString('latin1', 1, 4)).toBe('PNG');
  expect(png.readUInt32BE(16)).toBe(2 * Number(/width="(\d+)"/.exec(svg)?.[1]));
  expect(Buffer.from(await pngOf(svg.replaceAll(/<text[^]*?<\/text>/g, ''))).equals(png)).toBe(false);
});
