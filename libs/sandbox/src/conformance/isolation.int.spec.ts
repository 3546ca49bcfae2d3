import { isolationSuite } from '../testing/isolation-suite.js';

isolationSuite();
