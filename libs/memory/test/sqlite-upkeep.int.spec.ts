import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { temporaryDirectory } from './temporary-memory.js';
import { upkeepUnderKills } from './upkeep-kills.js';

upkeepUnderKills(
  'sqlite',
  () => {
    const { path, remove } = temporaryDirectory();
    onTestFinished(remove);
    return { adapter: 'sqlite', path: join(path, 'memory.db'), lockWaitMs: 60_000 };
  },
  { records: 40 },
);
