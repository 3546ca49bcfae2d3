import { Consolidation } from '@etude/contracts/gen/etude/v1/consolidation_pb';
import { status } from '@grpc/grpc-js';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { collect, gatewayForFile, pagesOf, refusal, SPEC } from './gateway.harness.js';

const rig = gatewayForFile();
const TENANTS = ['acme', 'globex'] as const;
type Tenant = (typeof TENANTS)[number];

const other = (tenant: Tenant): Tenant => (tenant === 'acme' ? 'globex' : 'acme');

type Step = { readonly tenant: Tenant; readonly requestId: string } & (
  | { readonly do: 'submit'; readonly prompt: string }
  | { readonly do: 'get' | 'cancel' | 'wait' | 'watch' | 'finish'; readonly which: number }
  | { readonly do: 'list'; readonly pageSize: number }
);

const tenant = fc.constantFrom(...TENANTS);
const requestId = fc.constantFrom('', 'r1', 'r2', 'r3');
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('submit' as const), tenant, requestId, prompt: fc.constantFrom('one', 'two') }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('get' as const, 'cancel' as const, 'wait' as const, 'watch' as const, 'finish' as const),
      tenant,
      requestId,
      which: fc.nat(20),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('list' as const), tenant, requestId, pageSize: fc.integer({ min: 1, max: 4 }) }) },
);

/** The tasks that each tenant owns by the gateway's answers, and the request ids. */
interface Model {
  readonly owned: Record<Tenant, Set<string>>;
  readonly requests: Map<string, { prompt: string; name: string }>;
  /** A new suffix per run, so that request ids differ from those of earlier runs. */
  readonly run: string;
}

/** The violations of isolation; empty if there are none. */
type Problems = readonly string[];
const problem = (wrong: boolean, text: string): Problems => (wrong ? [text] : []);
const statusOf = (call: Promise<unknown>) =>
  call.then(
    () => status.OK,
    (error: { code: status }) => error.code,
  );

async function submit(model: Model, { tenant: by, prompt, requestId: id }: Step & { do: 'submit' }): Promise<Problems> {
  const key = `${by}/${id}`;
  const earlier = id === '' ? undefined : model.requests.get(key);
  const call = rig.tasks(by).submitTask({ spec: { ...SPEC, prompt }, requestId: id === '' ? '' : `${model.run}.${id}` });
  if (earlier && earlier.prompt !== prompt) return problem((await statusOf(call)) !== status.ALREADY_EXISTS, `${key} was taken twice`);
  const { name } = await call;
  const problems = [
    ...problem(earlier !== undefined && name !== earlier.name, `${key} made two tasks`),
    ...problem(model.owned[other(by)].has(name), `${by} was given ${name} of another tenant`),
  ];
  model.owned[by].add(name);
  if (id !== '') model.requests.set(key, { prompt, name });
  return problems;
}

function ask(by: Tenant, what: 'get' | 'cancel' | 'wait' | 'watch', name: string): Promise<unknown> {
  const tasks = rig.tasks(by);
  if (what === 'get') return tasks.getTask({ name });
  if (what === 'cancel') return tasks.cancelTask({ name });
  if (what === 'wait') return tasks.waitTask({ name, timeout: { nanos: 1_000_000 } });
  return collect(tasks.watchTask({ name }), 1);
}

async function list(model: Model, by: Tenant, pageSize: number): Promise<Problems> {
  const pages = await pagesOf((pageToken) => rig.tasks(by).listTasks({ pageSize, pageToken }));
  const listed = pages.flatMap(({ tasks }) => tasks.map(({ name }) => name));
  const strange = listed.filter((name) => model.owned[other(by)].has(name));
  const missing = [...model.owned[by]].filter((name) => !listed.includes(name));
  return [...strange.map((name) => `${by} was shown ${name}`), ...missing.map((name) => `${by} was not shown ${name}`)];
}

async function take(model: Model, one: Step): Promise<Problems> {
  const { tenant: by } = one;
  if (one.do === 'submit') return submit(model, one);
  if (one.do === 'list') return list(model, by, one.pageSize);
  const known = [...model.owned.acme, ...model.owned.globex];
  const name = known[one.which % Math.max(1, known.length)];
  if (name === undefined) return [];
  if (one.do === 'finish') {
    const owner = model.owned.acme.has(name) ? 'acme' : 'globex';
    await rig.finish(owner, name).catch(() => undefined); // final already
    return [];
  }
  const answered = await statusOf(ask(by, one.do, name));
  const expected = model.owned[by].has(name) ? status.OK : status.NOT_FOUND;
  return problem(answered !== expected, `${by} ${one.do} ${name}: ${status[answered]}`);
}

it('never shows a tenant anything of another, whatever both do', async () => {
  expect.hasAssertions();
  let runs = 0;
  const run = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
    const model: Model = { owned: { acme: new Set(), globex: new Set() }, requests: new Map(), run: `p${(runs += 1)}` };
    const problems: string[] = [];
    for (const one of steps) problems.push(...(await take(model, one)));
    expect(problems).toEqual([]);
  });
  await fc.assert(run, { numRuns: 25 });
});

it('finds no consolidation run of another tenant', async () => {
  const { name } = await rig.client(Consolidation, 'acme').runConsolidation({});
  expect((await refusal(rig.client(Consolidation, 'globex').getConsolidationRun({ name }))).status).toBe(status.NOT_FOUND);
  expect((await rig.client(Consolidation, 'acme').listConsolidationRuns({})).runs).toMatchObject([{ name, plan: [] }]);
  expect((await rig.client(Consolidation, 'globex').listConsolidationRuns({})).runs).toEqual([]);
});

it('takes no page token of another tenant', async () => {
  for (let n = 0; n < 2; n += 1) await rig.tasks('acme').submitTask({ spec: SPEC });
  const { nextPageToken } = await rig.tasks('acme').listTasks({ pageSize: 1 });
  expect(await refusal(rig.tasks('globex').listTasks({ pageSize: 1, pageToken: nextPageToken }))).toMatchObject({
    status: status.INVALID_ARGUMENT,
    fields: ['page_token'],
  });
});
