import type { Reporter, TestCase, TestModule } from 'vitest/node';

const DRIVERS = ['local', 'kubernetes'] as const;
type Driver = (typeof DRIVERS)[number];

const MARKS = { passed: 'holds', failed: 'FAILS', skipped: 'skipped', pending: 'unfinished' } as const;
const WIDTH = 96;

const isDriver = (name: string): name is Driver => DRIVERS.some((driver) => driver === name);
const cut = (text: string) => (text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text.padEnd(WIDTH));
const oneLine = (text: string) => text.replace(/\s+/g, ' ');

/** One row for each fact about sandboxes, one column for each driver that must keep it. */
export default class ConformanceTable implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = new Map<string, Partial<Record<Driver, string>>>();
    for (const module of modules) if (isDriver(module.project.name)) this.add(rows, module, module.project.name);
    if (rows.size === 0) return;
    const lines = [...rows].map(
      ([fact, marks]) => `${cut(fact)}  ${DRIVERS.map((driver) => (marks[driver] ?? 'not run').padEnd(10)).join('  ')}`,
    );
    const differing = [...rows.values()].filter((marks) => marks.local !== marks.kubernetes).length;
    const head = `${cut('a sandbox')}  ${DRIVERS.map((driver) => driver.padEnd(10)).join('  ')}`;
    process.stderr.write(`\n${[head, '-'.repeat(head.length), ...lines].join('\n')}\n`);
    process.stderr.write(
      `${rows.size} facts, of which ${differing === 0 ? 'none differs' : `${differing} differ`} between the drivers\n\n`,
    );
  }

  private add(rows: Map<string, Partial<Record<Driver, string>>>, module: TestModule, driver: Driver): void {
    const unloaded = [...module.children.allTests()].length === 0;
    if (unloaded)
      rows.set(`(not loaded) ${module.relativeModuleId}`, {
        ...rows.get(`(not loaded) ${module.relativeModuleId}`),
        [driver]: MARKS.failed,
      });
    for (const test of module.children.allTests()) {
      const fact = oneLine(test.fullName);
      rows.set(fact, { ...rows.get(fact), [driver]: markOf(test) });
    }
  }
}

const markOf = (test: TestCase): string => MARKS[test.result().state];
