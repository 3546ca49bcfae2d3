import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { ConsoleRig, seriousFindings } from './console.harness.js';

const rig = new ConsoleRig();
beforeAll(() => rig.start());
afterAll(() => rig.stop());
afterEach(() => rig.closePages());

const HIDDEN = 424_242;
const CASES = [
  { args: [[1, 2, 3, 4]], expected: 6, public: true },
  { args: [[2, HIDDEN]], expected: HIDDEN + 2 },
];
const LEARNED = {
  prompt: 'Write a function total_even(numbers) that returns the sum of the even numbers in a list.',
  agent: 'solver',
  mode: 'MODE_TRAINING',
  labels: { team: 'numbers' },
  evaluator: { function_cases: { entry_point: 'total_even', cases: CASES } },
};

const submit = (spec: object) => rig.call<{ name: string }>('POST', '/v1/tasks', { spec });
const solved = async (spec: object) => {
  const { name } = await submit(spec);
  await rig.call('POST', `/v1/${name}:wait`, { learning: true });
  return name;
};

it('signs in by the address and forgets the key', async () => {
  const page = await rig.open('/tasks');
  await page.getByRole('heading', { name: 'Tasks' }).waitFor();
  expect(page.url()).toBe(`${rig.base}/console/tasks`);
  expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie')).not.toContain('key-of');
  await page.reload();
  await page.getByLabel('API key').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('UNAUTHENTICATED').waitFor();
});

it('shows a task from its list to each step, without hidden cases', async () => {
  await solved(LEARNED);
  const page = await rig.open('/tasks?labels=team%3Dnumbers');
  await page.getByRole('link', { name: 'Write a function total_even' }).click();
  await page.getByText('AC 2/2').first().waitFor();
  await page.getByRole('option', { name: 'a1.generate' }).click();
  await page.getByRole('region', { name: 'Code of the step' }).getByText('n % 3 == 0').waitFor();
  await page.getByRole('tab', { name: 'Prompt' }).click();
  await page.getByText('user').first().waitFor();
  await page.getByRole('tab', { name: 'Outcome' }).click();
  await page.getByRole('option', { name: 'a1.execute' }).click();
  await page.getByText('1 run of hidden cases').waitFor();
  await page.getByRole('option', { name: 'a1.evaluate' }).click();
  await page.getByText('0 of 2 cases passed').waitFor();
  expect(await page.content()).not.toContain(`${HIDDEN}`);
  await rig.picture(page, 'task');
});

it('answers the question of a task in place and sees it end', async () => {
  const { name } = await submit({ prompt: 'Ask which colour, and answer with it.', strategy: 'codeact' });
  const page = await rig.open(`/${name}`);
  await page.getByText('Which colour shall the boat have?').first().waitFor();
  await page.getByLabel('Your answer').fill('green');
  await page.getByRole('button', { name: 'Answer' }).click();
  expect(await page.getByRole('region', { name: 'Output of the answer' }).textContent()).toBe('green');
});

it.each(['light', 'dark'] as const)('has no serious findings of accessibility in %s colours', async (colours) => {
  const { tasks } = await rig.call<{ tasks: Array<{ name: string }> }>('GET', '/v1/tasks');
  const found: Record<string, string[]> = {};
  for (const path of ['/tasks', `/${tasks.at(-1)!.name}`]) {
    const page = await rig.open(path, { colours });
    await page.getByRole('heading').first().waitFor();
    await page.waitForLoadState('networkidle');
    for (const finding of await seriousFindings(page)) (found[path] ??= []).push(finding);
  }
  expect(found).toEqual({});
});
