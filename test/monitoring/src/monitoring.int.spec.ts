import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Tasks } from '@etude/contracts/gen/etude/v1/tasks_pb';
import { createServiceClient } from '@etude/contracts/grpc-client';
import { freePort } from '@etude/test-support/ports';
import { startProcess, type TestProcess } from '@etude/test-support/processes';
import { startStack, type TestStack } from '@etude/test-support/stack';
import { until } from '@etude/test-support/until';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const monitoring = join(root, 'helm/etude/monitoring');
const run = promisify(execFile);

interface Rules {
  readonly groups: ReadonlyArray<{
    readonly rules: ReadonlyArray<{ readonly alert: string; readonly expr: string; readonly annotations: Record<string, string> }>;
  }>;
}
interface Dashboard {
  readonly panels: ReadonlyArray<{ readonly title: string; readonly targets: ReadonlyArray<{ readonly expr: string }> }>;
}

const alerts = (parse(readFileSync(join(monitoring, 'alerts.yaml'), 'utf8')) as Rules).groups.flatMap(({ rules }) => rules);
const { panels } = JSON.parse(readFileSync(join(monitoring, 'dashboard.json'), 'utf8')) as Dashboard;
const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m')));

let dir: string;
let stack: TestStack;
let services: readonly TestProcess[];
let prometheus: TestProcess;
let url: string;

const httpPort = (service: TestProcess) => Number(/"httpPort":(\d+)/.exec(service.output())?.[1]);

async function asked<T>(path: string): Promise<T> {
  const answer = await fetch(`${url}/api/v1/${path}`);
  const { status, data, error } = (await answer.json()) as { readonly status: string; readonly data: T; readonly error?: string };
  if (status !== 'success') throw new Error(`${path}: ${error}`);
  return data;
}

const query = async (expr: string) =>
  (
    await asked<{ readonly result: ReadonlyArray<{ readonly value: readonly [number, string] }> }>(
      `query?query=${encodeURIComponent(expr)}`,
    )
  ).result;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'etude-monitoring-'));
  stack = await startStack({
    script: join(root, 'sdks/python/tests/model.yaml'),
    env: { ETUDE_SANDBOX_INTERNAL_TOKEN: 'a-token-of-the-inside' },
  });
  services = [stack.gateway, stack.controller, stack.consolidator, await stack.startRolloutWorker()];
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const targets = services.map((service) => `127.0.0.1:${httpPort(service)}`);
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(monitoring, 'alerts.yaml')],
    scrape_configs: [{ job_name: 'etude', static_configs: [{ targets }] }],
  };
  // JSON is YAML.
  writeFileSync(join(dir, 'prometheus.yml'), JSON.stringify(config));
  prometheus = await startProcess({
    command: 'prometheus',
    args: [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    ready: 'Server is ready to receive web requests',
  });
});

afterAll(async () => {
  await prometheus?.stop();
  await stack?.stop();
  rmSync(dir, { recursive: true, force: true });
});

it('has a case in which each alert fires, and one in which it stays quiet', async () => {
  const cases = readFileSync(join(monitoring, 'alerts.test.yaml'), 'utf8');
  for (const { alert } of alerts) expect(cases).toMatch(new RegExp(`name: ${alert} fires[^]*name: ${alert} stays quiet`));
  const { stdout } = await run('promtool', ['test', 'rules', join(monitoring, 'alerts.test.yaml')]);
  expect(stdout).toContain('SUCCESS');
});

it('leads from each alert to its section of the runbook', () => {
  const sections = [...readFileSync(join(root, 'docs/runbook.md'), 'utf8').matchAll(/^## (\w+)$/gm)].map(([, title]) => title);
  expect(sections).toEqual(alerts.map(({ alert }) => alert));
  for (const { alert, annotations } of alerts) expect(annotations['runbook_url']).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
});

it('names only metrics that a Prometheus finds in a stack at work', async () => {
  const tasks = createServiceClient(Tasks, stack.address);
  const evaluator = { kind: { case: 'pythonTests' as const, value: { entryPoint: 'square', tests: 'assert square(3) == 9' } } };
  const { name } = await tasks.submitTask({ spec: { prompt: 'Write a function square(n).', evaluator } });
  await tasks.waitTask({ name, timeout: { seconds: 60n } });
  tasks.close();
  await until(async () => (await query('sum(etude_rollouts_total{state="succeeded"}) == 1')).length > 0, { what: 'the task is counted' });
  await until(async () => (await query('count(up{job="etude"} == 1) == 4')).length > 0, { what: 'all services are scraped' });
  const known = new Set(Object.keys(await asked<Record<string, unknown>>('metadata')));
  for (const expr of [...queries, ...alerts.map((alert) => alert.expr)]) {
    await query(expr);
    for (const [metric] of expr.matchAll(/\b(etude|process)_\w+/g)) expect(known).toContain(metric.replace(/_(bucket|count|sum)$/, ''));
  }
  expect(queries.length).toBeGreaterThan(20);
  // The panels show the task.
  expect(Number((await query('sum(etude_model_tokens_total)'))[0]?.value[1])).toBeGreaterThan(0);
  expect(Number((await query('sum(etude_work_seconds_count{work="chat",outcome="ok"})'))[0]?.value[1])).toBe(1);
  const firing = await asked<{ readonly alerts: ReadonlyArray<{ readonly state: string }> }>('alerts');
  expect(firing.alerts.filter(({ state }) => state === 'firing')).toEqual([]);
});

it('names, describes and types its metrics as Prometheus wants it', async () => {
  for (const service of services) {
    const metrics = await (await fetch(`http://127.0.0.1:${httpPort(service)}/metrics`)).text();
    const own = metrics.split('\n').filter((line) => /etude_/.test(line));
    writeFileSync(join(dir, 'metrics.txt'), `${own.join('\n')}\n`);
    const { stdout, stderr } = await run('bash', ['-c', `promtool check metrics < ${join(dir, 'metrics.txt')}`]);
    expect(stdout + stderr).toBe('');
  }
});
