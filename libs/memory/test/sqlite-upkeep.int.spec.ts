import { placeInFile } from './temporary-memory.js';
import { upkeepUnderKills } from './upkeep-kills.js';

upkeepUnderKills('sqlite', () => ({ ...placeInFile(), lockWaitMs: 60_000 }), { records: 40 });
