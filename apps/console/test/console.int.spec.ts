import { execFileSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ConsoleRig, seriousFindings } from './console.harness.js';

const rig = new ConsoleRig();
/** Id of a fact that Etude compares with another fact some seconds after storing both. */
let comparedFact: string;
beforeAll(async () => {
  await rig.start();
  for (const colour of ['red', 'green']) {
    const told = { agent: 'harbour', text: `The boat at the old pier is ${colour}.` };
    comparedFact = (await rig.call<{ fact: { id: string } }>('POST', '/v1/memory/facts', told)).fact.id;
  }
});
afterAll(() => rig.stop());
afterEach(() => rig.closePages());

const HIDDEN = 424_242;
const LEARNED = {
  prompt: 'Write a function total_even(numbers) that returns the sum of the even numbers in a list.',
  agent: 'solver',
  mode: 'MODE_TRAINING',
  labels: { team: 'numbers' },
  evaluator: {
    function_cases: {
      entry_point: 'total_even',
      cases: [
        { args: [[1, 2, 3, 4]], expected: 6, public: true },
        { args: [[2, HIDDEN]], expected: HIDDEN + 2 },
      ],
    },
  },
};

const submit = (spec: object) => rig.call<{ name: string }>('POST', '/v1/tasks', { spec });
async function solve(spec: object): Promise<string> {
  const { name } = await submit(spec);
  await rig.call('POST', `/v1/${name}:wait`, { learning: true });
  return name;
}

const TAX = 'def add_tax(net: float, percent: float = 19.0) -> float:\n    return round(net * (1 + percent / 100), 2)\n';
const STRICT_TAX = TAX.replace('    return', '    if net < 0:\n        raise ValueError("no price")\n    return');
const register = (agent: string, code: string, description: string, base_version = 0) =>
  rig.call('POST', '/v1/skills', {
    base_version,
    wait: true,
    skill: {
      name: 'add_tax',
      agent,
      description,
      category: 'shop.prices',
      code,
      tests: [{ call: { args: [100], expected: 119 } }, { call: { kwargs: { net: 50, percent: 7 }, expected: 53.5 } }],
    },
  });

/** Registers an active skill, and a second version that waits for review. */
async function registerTwice(agent: string): Promise<void> {
  await register(agent, TAX, 'Adds a tax in per cent to a net price.');
  await rig.call('PATCH', `/v1/agents/${agent}`, {
    agent: { procedural_memory_settings: { approval_mode: 'review' } },
    update_mask: 'proceduralMemorySettings.approvalMode',
  });
  await register(agent, STRICT_TAX, 'Adds a tax to a net price.', 1);
}

describe('signing in', () => {
  it('takes the key out of the address and keeps it in memory only', async () => {
    const page = await rig.open('/tasks');
    await page.getByRole('heading', { name: 'Tasks' }).waitFor();
    expect(page.url()).toBe(`${rig.base}/console/tasks`);
    expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie')).not.toContain('key-of');
    await page.reload();
    await page.getByLabel('API key').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('UNAUTHENTICATED').waitFor();
  });

  it('tells a key without the role what it lacks', async () => {
    const page = await rig.open('/operations', { who: 'guest' });
    expect(await page.getByRole('alert').first().textContent()).toContain('PERMISSION_DENIED');
  });
});

describe('tasks', () => {
  it('are shown from the list to each step, without hidden cases', async () => {
    await solve(LEARNED);
    const page = await rig.open('/tasks?labels=team%3Dnumbers');
    await page.getByRole('link', { name: 'Write a function total_even' }).click();
    await page.getByText('AC 2/2').first().waitFor();
    await page.getByRole('option', { name: 'a1.generate' }).click();
    await page.getByRole('region', { name: 'Code of the step' }).getByText('n % 3 == 0').waitFor();
    await page.getByRole('tab', { name: 'Prompt' }).click();
    await page.getByText('user · Task').waitFor();
    await page.getByRole('tab', { name: 'Outcome' }).click();
    await page.getByRole('option', { name: 'a1.execute' }).click();
    await page.getByText('1 run of hidden cases').waitFor();
    await page.getByRole('option', { name: 'a1.evaluate' }).click();
    await page.getByText('0 of 2 cases passed').waitFor();
    await rig.picture(page, 'task');
    expect(await page.content()).not.toContain(`${HIDDEN}`);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy as Python' }).click();
    await page.getByText('Copied').waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    execFileSync('python3', ['-c', `import ast, sys; ast.parse(sys.argv[1])`, copied]);
    expect(copied).toContain('training=True, evaluator=Parse("{');
    expect(copied).not.toContain(`${HIDDEN}`);
  });

  it('ask their caller, who answers in place and sees them end', async () => {
    const { name } = await submit({ prompt: 'Ask which colour, and answer with it.', strategy: 'codeact' });
    const page = await rig.open(`/${name}`);
    await page.getByText('Which colour shall the boat have?').first().waitFor();
    await page.getByLabel('Your answer').fill('green');
    await page.getByRole('button', { name: 'Answer' }).click();
    expect(await page.getByRole('region', { name: 'Output of the answer' }).textContent()).toBe('green');
  });

  it('are cancelled, and submitted again', async () => {
    const { name } = await submit({ prompt: 'Ask which colour, and answer with it.', strategy: 'codeact' });
    const page = await rig.open(`/${name}`);
    await page.getByText('Which colour shall the boat have?').first().waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('heading', { level: 1 }).getByText('cancelled').waitFor();
    await page.getByRole('button', { name: 'Submit again' }).click();
    await page.getByRole('button', { name: 'Answer' }).waitFor();
    expect(page.url()).not.toContain(name);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('heading', { level: 1 }).getByText('cancelled').waitFor();
  });
});

describe('skills', () => {
  it('are approved by their digest beside the version in use', async () => {
    await registerTwice('shop');
    const page = await rig.open('/review?agent=shop');
    await page.getByRole('link', { name: 'add_tax@2' }).click();
    await page.getByRole('region', { name: 'Changes from version 1' }).first().getByText('raise ValueError').waitFor();
    await page.getByText('Mutants noticed').waitFor();
    const tests = await page.getByRole('region', { name: /^Test \d$/ }).allTextContents();
    expect(tests.map((test) => JSON.parse(test) as object)).toMatchObject([
      { args: [100], expected: 119 },
      { kwargs: { net: 50, percent: 7 }, expected: 53.5 },
    ]);
    await rig.picture(page, 'review');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('heading', { level: 1 }).getByText('active').waitFor();
    expect(await rig.call('GET', '/v1/skills/add_tax?agent=shop')).toMatchObject({ version: 2, status: 'SKILL_STATUS_ACTIVE' });
  });

  it('are tried by a form, compared, and found by category and meaning', async () => {
    await register('market', TAX, 'Adds a tax in per cent to a net price.');
    await register('market', STRICT_TAX, 'Adds a tax to a net price.', 1);
    const page = await rig.open('/skills?category=shop&agent=market');
    await page.getByRole('link', { name: 'add_tax' }).click();
    await page.getByRole('tab', { name: 'Try it' }).click();
    await page.getByLabel('net').fill('200');
    await page.getByRole('button', { name: 'Run' }).click();
    expect(await page.getByRole('region', { name: 'Result' }).textContent()).toBe('238');
    await page.getByRole('tab', { name: 'Versions' }).click();
    await page.getByRole('link', { name: 'show changes of 2' }).click();
    await page.getByRole('region', { name: 'Changes from version 1' }).first().getByText('raise ValueError').waitFor();
    await page.getByRole('link', { name: 'Skills' }).click();
    await page.getByLabel('Search by meaning').fill('add a tax to a price');
    await page.keyboard.press('Enter');
    await page.getByRole('columnheader', { name: 'Similarity' }).waitFor();
    await page.getByRole('link', { name: 'add_tax' }).first().waitFor();
    await rig.picture(page, 'skills');
  });

  it('show no tests that come from the cases of tasks', async () => {
    await rig.call('PATCH', '/v1/agents/careful', {
      agent: { procedural_memory_settings: { enabled: true, auto_register_skills: true, approval_mode: 'review' } },
      update_mask: 'proceduralMemorySettings',
    });
    await solve({ ...LEARNED, agent: 'careful' });
    const page = await rig.open('/review?agent=careful');
    await page.getByRole('link', { name: 'total_even@1' }).click();
    await page.getByText('made from cases of tasks; not shown').waitFor();
    expect(await page.content()).not.toContain(`${HIDDEN}`);
    await page.getByLabel('Reason for a rejection').fill('There is one already.');
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByText('There is one already.').first().waitFor();
  });
});

describe('memory', () => {
  it('is that of its own user for a bound token, without a choice of users', async () => {
    const tell = (user: string, text: string) => rig.call('POST', '/v1/memory/facts', { agent: 'scout', user, text });
    await Promise.all([tell('ann', 'The lantern of Ann hangs in the hall.'), tell('bob', 'The lantern of Bob hangs in the shed.')]);
    const page = await rig.open('/memory?q=lantern', { who: 'ann' });
    await page.getByRole('article').getByText('The lantern of Ann').waitFor();
    expect(await page.getByText('The lantern of Bob').count()).toBe(0);
    expect(await page.getByLabel('User').count()).toBe(0);
    await rig.move(page, '/tasks');
    await page.getByRole('heading', { name: 'Tasks' }).waitFor();
    const owners = await rig.open('/memory?q=lantern');
    await owners.getByLabel('User').waitFor();
    await owners.getByRole('article').getByText('The lantern of Bob').waitFor();
  });

  it('is searched across layers, and a fact tells its history', async () => {
    const tell = (text: string) => rig.call('POST', '/v1/memory/facts', { agent: 'scout', text, subject: 'quay' });
    await tell('The quay is made of wood.');
    await tell('The quay is made of granite.');
    const page = await rig.open('/memory');
    await page.getByLabel('Search memory').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('what is the quay made of');
    await page.keyboard.press('Enter');
    await page.getByRole('article').getByText('The quay is made of granite.').waitFor();
    await page.getByText('Why this score').first().click();
    await page.getByText('Learned from:').first().waitFor();
    await rig.picture(page, 'memory');
    await page.getByRole('article').filter({ hasText: 'granite' }).getByRole('link').first().click();
    await page.getByRole('heading', { name: 'History' }).waitFor();
    expect(await page.getByRole('listitem').count()).toBe(2);
    await page.getByRole('link', { name: 'The quay is made of wood.' }).click();
    await page.getByRole('heading', { level: 1 }).getByText('wood').waitFor();
  });

  it('lets a decision about two facts be undone', async () => {
    const page = await rig.open(`/memory/facts/${comparedFact}`);
    await page.getByText('the newer replaces the older').waitFor();
    await page.getByText('The boat was painted.').waitFor();
    await page.getByRole('button', { name: 'Undo this decision' }).click();
    await page.getByText('both are true').first().waitFor();
    const { records } = await rig.call<{ records: unknown[] }>('GET', '/v1/memory/records?agent=harbour');
    expect(records).toHaveLength(2);
  });

  it('takes documents, and forgets them with a receipt', async () => {
    const page = await rig.open('/memory/documents?agent=scout');
    const file = { name: 'quay.md', mimeType: 'text/markdown', buffer: Buffer.from('# The quay\n\nBollards stand every ten metres.\n') };
    await page.getByLabel('Import a document').setInputFiles(file);
    await page.getByText('quay.md: added').waitFor();
    await page.getByRole('link', { name: 'The quay' }).click();
    await page.getByRole('button', { name: 'Erase' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Erase' }).click();
    await page.getByRole('heading', { name: 'Receipt' }).getByText('succeeded').waitFor();
    expect(await rig.call('GET', '/v1/memory/documents?agent=scout')).toMatchObject({ documents: [] });
  });

  it('is consolidated by a plan first, then for real, and undone', async () => {
    for (let count = 0; count < 2; count += 1) await solve({ ...LEARNED, agent: 'learner' });
    const page = await rig.open('/memory/consolidation');
    await page.getByLabel('Agent').fill('learner');
    await page.getByRole('button', { name: 'Plan only' }).click();
    await page.getByRole('heading', { name: 'Plan' }).getByText('done').waitFor();
    await page.getByRole('button', { name: 'Consolidate' }).click();
    await page.getByRole('heading', { name: 'Run' }).getByText('done').waitFor();
    await page.getByRole('button', { name: 'Undo this run' }).click();
    expect(await page.getByRole('status').filter({ hasText: 'undone' }).textContent()).toContain('learner: 1 undone');
    await page.getByRole('link', { name: 'All runs' }).click();
    const runs = page.getByRole('region', { name: 'runs' }).getByRole('row');
    await runs.filter({ hasText: 'plan' }).getByText('done').waitFor();
    await runs.filter({ hasText: 'asked' }).getByRole('link').click();
    await page.getByRole('heading', { name: 'Run' }).getByText('done').waitFor();
  });
});

/** A task that the model solves only if its prompt has the fact `told`. */
const FEE = {
  prompt: 'Write a function fee(metres) that returns what a boat of this length pays.',
  agent: 'cashier',
  limits: { attempts: 1 },
  memory: { layers: ['semantic'] },
  evaluator: { function_cases: { entry_point: 'fee', cases: [{ args: [2], expected: 600 }] } },
};
const FEE_TASKS = 44;

it('draws how tasks went over time, and what a memory is worth that a lot withholds', async () => {
  const told = { agent: 'cashier', text: 'A function fee(metres) returns what a boat of this length pays. It is told in cents.' };
  const { fact } = await rig.call<{ fact: { id: string } }>('POST', '/v1/memory/facts', told);
  // Each task has its own user, so that no task recalls episodes of another.
  await Promise.all(Array.from({ length: FEE_TASKS }, (_, at) => solve({ ...FEE, user: `skipper${at}` })));
  const counted = async () => {
    const { memory } = await rig.call<{ memory: { shown: string; withheld: string } }>('GET', '/v1/memory/lift?agent=cashier');
    return Number(memory.shown) + Number(memory.withheld);
  };
  await expect.poll(counted).toBe(FEE_TASKS);
  const page = await rig.open('/learning?agent=cashier');
  await page.getByRole('img', { name: 'Right at the first attempt' }).waitFor();
  const row = page.getByRole('row', { name: `fact ${fact.id}` });
  await row.getByRole('img', { name: /^\+100 points \(\+\d+ points to \+\d+ points\)$/ }).waitFor();
  expect(await row.textContent()).toMatch(/(\d+) of \1 right0 of \d+ right/);
  await page.getByRole('row', { name: 'semantic' }).waitFor();
  await row.scrollIntoViewIfNeeded();
  await rig.picture(page, 'learning');
});

it('runs cells in a sandbox, with pictures, tables and files', async () => {
  const page = await rig.open('/sandboxes');
  await page.getByRole('button', { name: 'Open a sandbox' }).click();
  const run = async (code: string) => {
    await page.getByLabel('Python').fill(code);
    await page.keyboard.press('Control+Enter');
  };
  await run('print("ahoy")\nopen("log.txt", "w").write("seen")');
  await page.getByRole('article', { name: 'Cell 1' }).getByText('ok', { exact: true }).waitFor();
  expect(await page.getByRole('region', { name: 'Output of cell 1' }).textContent()).toBe('ahoy\n');
  await page.getByRole('button', { name: 'log.txt', exact: true }).waitFor();
  const circle =
    '<svg xmlns=\\"http://www.w3.org/2000/svg\\" width=\\"90\\" height=\\"60\\"><circle cx=\\"45\\" cy=\\"30\\" r=\\"25\\"/></svg>';
  await run(`class Drawing:\n    def _repr_svg_(self):\n        return "${circle}"\nDrawing()`);
  await page.getByRole('img', { name: 'Picture' }).waitFor();
  await page.getByLabel('Upload a file').setInputFiles({ name: 'in.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') });
  await page.getByRole('button', { name: 'in.csv', exact: true }).waitFor();
  await run('1 / 0');
  await page.getByRole('region', { name: 'Errors of cell 3' }).getByText('ZeroDivisionError').waitFor();
  await rig.picture(page, 'sandbox');
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'in.csv', exact: true }).click()]);
  expect(download.suggestedFilename()).toBe('in.csv');
  await page.getByRole('button', { name: 'End it' }).click();
  await page.getByRole('heading', { level: 1 }).getByText('closed').waitFor();
});

it('shows queues and spend to operators', async () => {
  await solve(LEARNED);
  const page = await rig.open('/operations');
  await page.getByRole('row', { name: 'rollout.run' }).waitFor();
  await page.getByRole('row', { name: 'generate' }).first().waitFor();
  await page.getByRole('region', { name: 'sandbox controllers' }).getByRole('row').nth(1).waitFor();
  const tenants = page.getByRole('region', { name: 'tenants' }).getByRole('row');
  expect(await tenants.nth(1).textContent()).toMatch(/^test/);
  await rig.picture(page, 'operations');
});

it('redrives a dead letter, whose task is then solved', async () => {
  const page = await rig.open('/operations/rollout.run');
  await page.getByText('This queue has no dead letters.').waitFor();
  expect(await page.getByRole('button', { name: 'Redrive all' }).isDisabled()).toBe(true);
  const cases = [{ args: [[1, 2]], expected: 3 }];
  const { name } = await submit({
    prompt: 'Write a function add_up(numbers).',
    agent: 'unlucky',
    evaluator: { function_cases: { entry_point: 'add_up', cases } },
  });
  await rig.call('POST', `/v1/${name}:wait`, {});
  await page.getByRole('link', { name: 'All queues' }).click();
  await page.getByRole('row', { name: 'rollout.run' }).getByRole('link').click();
  const letter = page.getByRole('row', { name: `${name.replace('tasks/', '')}-r1` });
  await letter.getByText('MODEL_REFUSED').waitFor();
  await letter.getByText('The key is not known.').waitFor();
  await letter.getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Redrive the 1 chosen' }).click();
  await page.getByText('1 job queued again').waitFor();
  await page.getByText('This queue has no dead letters.').waitFor();
  expect(await rig.call('POST', `/v1/${name}:wait`, {})).toMatchObject({ state: 'TASK_STATE_SUCCEEDED' });
});

it('fails a test whose page breaks the policy', async () => {
  const page = await rig.open('/tasks');
  await page.evaluate(`document.body.append(Object.assign(document.createElement('style'), { textContent: 'p {}' }))`);
  await expect(rig.closePages()).rejects.toThrow('Content Security Policy');
});

it('is used by the keyboard alone', async () => {
  await Promise.all([solve(LEARNED), solve(LEARNED)]);
  const page = await rig.open('/operations');
  await page.getByRole('row', { name: 'rollout.run' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('t');
  await page.getByRole('heading', { name: 'Tasks' }).waitFor();
  await page.getByRole('row').nth(2).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  await page.getByRole('option', { selected: true }).waitFor();
  await page.getByRole('listbox').focus();
  await page.keyboard.press('ArrowUp');
  await page.waitForURL(/step=/);
  await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowRight');
  await page.waitForURL(/view=prompt/);
  await page.keyboard.press('?');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('next row of a list').waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.goto(`${rig.base}/console/tasks#key=key-of-owner`);
  await page.getByRole('heading', { name: 'Tasks' }).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await page.evaluate('document.activeElement.id')).toBe('content');
});

describe('speed', () => {
  it('loads little before the first view', async () => {
    await submit(LEARNED);
    const page = await rig.open('/tasks');
    await page.getByRole('row').nth(1).waitFor();
    const interactiveMs = Number(await page.evaluate('performance.now()'));
    const files = `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/console/'))`;
    const bytes = Number(await page.evaluate(`${files}.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`));
    console.log(`first view: ${Math.round(bytes / 1024)} KiB packed, rows of tasks after ${Math.round(interactiveMs)} ms`);
    // The promise is at most 300 KiB. More than 180 KiB would mean a development build.
    expect(bytes).toBeLessThan(180 * 1024);
    expect(interactiveMs).toBeLessThan(10_000);
  });

  it('scrolls through a trace of 2,000 events', async () => {
    const name = await solve({ ...LEARNED, mode: 'MODE_INFERENCE' });
    rig.lengthen(name, 2_000);
    const page = await rig.open(`/${name}`);
    await page.getByText('2,000 events').waitFor();
    const { framesPerSecond, cpuMs } = await rig.scroll(page, '[role=listbox]');
    console.log(`trace of 2,000 events: ${Math.round(framesPerSecond)} frames per second, ${cpuMs.toFixed(1)} ms of CPU per frame`);
    expect(await page.getByRole('option').count()).toBeLessThan(100);
    // 50 frames per second leave 20 ms for each frame. Other processes can make a frame take longer.
    expect(cpuMs).toBeLessThan(100);
  });
});

/** The addresses of all pages, after creating something to show on each. */
async function everyPage(): Promise<string[]> {
  const [task, { name: sandbox }] = await Promise.all([
    solve(LEARNED),
    rig.call<{ name: string }>('POST', '/v1/sandboxes', {}),
    registerTwice('harbour'),
  ]);
  const episodes = async () => (await rig.call<{ records: Array<{ id: string }> }>('GET', '/v1/memory/records?kind=episode')).records;
  await expect.poll(episodes).not.toEqual([]);
  const [episode] = await episodes();
  const skill = 'add_tax?agent=harbour';
  return [
    '/tasks',
    `/${task}`,
    '/skills',
    `/skills/${skill}&tab=evidence`,
    `/skills/${skill}&tab=try`,
    `/skills/${skill}&tab=versions`,
    '/review',
    `/review/${skill}&version=2`,
    '/memory?q=boat',
    '/memory/records',
    `/memory/records/episodic:${episode?.id}`,
    `/memory/facts/${comparedFact}`,
    '/memory/documents',
    '/memory/consolidation',
    '/memory/erasure',
    '/learning',
    '/sandboxes',
    `/${sandbox}`,
    '/operations',
    '/operations/rollout.run',
  ];
}

it('has no serious findings of accessibility on any page, in light and in dark colours', async () => {
  const paths = await everyPage();
  const page = await rig.open('/tasks');
  const found: Record<string, string[]> = {};
  for (const path of paths) {
    await rig.move(page, path);
    const light = await seriousFindings(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await seriousFindings(page, ['color-contrast']);
    await page.emulateMedia({ colorScheme: 'light' });
    if (light.length + dark.length > 0) found[path] = [...light, ...dark];
  }
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  found['keys'] = await seriousFindings(page);
  expect(found).toEqual({ keys: [] });
});
