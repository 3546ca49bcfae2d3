import type { RunResult } from '@etude/contracts/sandbox';

export const CLEAN_RUN: RunResult = {
  exit: 'ok',
  exitCode: 0,
  signal: null,
  stdout: '',
  stderr: '',
  stdoutCutBytes: 0,
  stderrCutBytes: 0,
  cpuMs: 1,
  wallMs: 1,
  memoryPeakKiB: 1,
};
