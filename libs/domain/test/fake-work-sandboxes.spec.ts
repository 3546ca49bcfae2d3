import { describe } from 'vitest';
import { FakeWorkSandboxes } from './fake-work-sandboxes.js';
import { workSandboxesConformance } from './work-sandboxes-conformance.js';

describe('the fake of work sandboxes', () => {
  workSandboxesConformance(async () => {
    const workSandboxes = new FakeWorkSandboxes();
    return { workSandboxes, close: async () => workSandboxes.close() };
  });
});
