import { describe } from 'vitest';
import { isolationSuite } from './isolation-suite.js';

describe('with a bubblewrap for each', () => {
  isolationSuite({ warm: 1, isolation: 'single' });
});
