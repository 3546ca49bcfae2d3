import { writeFileSync } from 'node:fs';

/** Writes how long each test file took, imports and hooks included, as JSON: {"/path/of.spec.ts": seconds}. */
export default class Seconds {
  onTestRunEnd(modules) {
    const seconds = modules.map((module) => {
      const { collectDuration, setupDuration, duration } = module.diagnostic();
      return [module.moduleId, (collectDuration + setupDuration + duration) / 1_000];
    });
    writeFileSync(process.env.ETUDE_TEST_SECONDS_PATH, JSON.stringify(Object.fromEntries(seconds)));
  }
}
